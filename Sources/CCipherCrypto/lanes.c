#include "CCipherLanes.h"

#if defined(__x86_64__) && defined(__linux__) && __has_include(<intel-ipsec-mb.h>)

#include <dlfcn.h>
#include <intel-ipsec-mb.h>
#include <openssl/crypto.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct cs_lanes {
    DECLARE_ALIGNED(uint8_t encryption_keys[15 * 16], 16);
    DECLARE_ALIGNED(uint8_t decryption_keys[15 * 16], 16);
    DECLARE_ALIGNED(uint8_t inner[SHA512_DIGEST_SIZE_IN_BYTES], 16);
    DECLARE_ALIGNED(uint8_t outer[SHA512_DIGEST_SIZE_IN_BYTES], 16);
    // The manager follows this structure, in the same allocation, which can be erased.
    IMB_MGR *manager;
    size_t size;
};

static size_t (*manager_size)(void);
static IMB_MGR *(*place_manager)(void *, uint64_t, unsigned);
static void (*choose_instructions)(IMB_MGR *, IMB_ARCH *);
// A manager before its first job, without a key. The library tests itself whenever it creates a manager, which takes as
// long as sealing a hundred pages, so other managers are copies of this one. Null if the library cannot be used.
static IMB_MGR *pristine;

static IMB_MGR *make_pristine(void) {
    void *memory = 0;
    if (posix_memalign(&memory, 64, manager_size())) return 0;
    memset(memory, 0, manager_size());
    IMB_MGR *manager = place_manager(memory, 0, 1);
    IMB_ARCH instructions = IMB_ARCH_NONE;
    if (manager) choose_instructions(manager, &instructions);
    // With the two lanes of SSE, it is no faster than libcrypto.
    if (!manager || manager->imb_errno || instructions < IMB_ARCH_AVX2
        || (manager->features & IMB_FEATURE_SELF_TEST && !(manager->features & IMB_FEATURE_SELF_TEST_PASS))) {
        free(memory);
        return 0;
    }
    return manager;
}

// The library's structures are those of one version, which must be the header's.
static void load(void) {
    void *library = dlopen("libIPSec_MB.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) return;
    unsigned (*version)(void) = (unsigned (*)(void))dlsym(library, "imb_get_version");
    if (!version || version() != IMB_VERSION_NUM) return;
    manager_size = (size_t (*)(void))dlsym(library, "imb_get_mb_mgr_size");
    place_manager = (IMB_MGR * (*)(void *, uint64_t, unsigned)) dlsym(library, "imb_set_pointers_mb_mgr");
    choose_instructions = (void (*)(IMB_MGR *, IMB_ARCH *))dlsym(library, "init_mb_mgr_auto");
    if (manager_size && place_manager && choose_instructions) pristine = make_pristine();
}

// Computes the state of SHA-512 after the key's block. Source: RFC 2104, section 4.
static void absorb(const cs_lanes *lanes, const uint8_t *key, uint8_t pad, uint8_t *state) {
    uint8_t block[IMB_SHA_512_BLOCK_SIZE];
    memset(block, pad, sizeof block);
    for (int index = 0; index < 32; index++) block[index] ^= key[index];
    IMB_SHA512_ONE_BLOCK(lanes->manager, block, state);
    OPENSSL_cleanse(block, sizeof block);
}

// Erased memory that was used before, kept because the system has to clear new pages. All pieces have the same size.
enum { most_spare = 16 };
static void *spare[most_spare];
static int spare_count;
static pthread_mutex_t spare_lock = PTHREAD_MUTEX_INITIALIZER;

static void *take_memory(size_t size) {
    void *memory = 0;
    pthread_mutex_lock(&spare_lock);
    if (spare_count > 0) memory = spare[--spare_count];
    pthread_mutex_unlock(&spare_lock);
    if (!memory && posix_memalign(&memory, 64, size)) return 0;
    return memory;
}

static void give_memory(void *memory) {
    pthread_mutex_lock(&spare_lock);
    bool is_kept = spare_count < most_spare;
    if (is_kept) spare[spare_count++] = memory;
    pthread_mutex_unlock(&spare_lock);
    if (!is_kept) free(memory);
}

cs_lanes *cs_lanes_open(const uint8_t *encryption_key, const uint8_t *authentication_key) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load);
    if (!pristine) return 0;
    size_t start = (sizeof(cs_lanes) + 63) / 64 * 64, size = start + manager_size();
    void *memory = take_memory(size);
    if (!memory) return 0;
    memset(memory, 0, start);
    memcpy((uint8_t *)memory + start, pristine, manager_size());
    cs_lanes *lanes = memory;
    lanes->size = size;
    // Make the copy point at its own parts instead of the original's.
    IMB_MGR *manager = place_manager((uint8_t *)memory + start, pristine->flags, 0);
    if (!manager || manager->imb_errno) {
        free(memory);
        return 0;
    }
    lanes->manager = manager;
    IMB_AES_KEYEXP_256(manager, encryption_key, lanes->encryption_keys, lanes->decryption_keys);
    absorb(lanes, authentication_key, 0x36, lanes->inner);
    absorb(lanes, authentication_key, 0x5c, lanes->outer);
    return lanes;
}

void cs_lanes_close(cs_lanes *lanes) {
    if (!lanes) return;
    OPENSSL_cleanse(lanes, lanes->size);
    give_memory(lanes);
}

static bool is_done(const IMB_JOB *job) { return job->status == IMB_STATUS_COMPLETED; }

static bool run(cs_lanes *lanes, const cs_message *messages, size_t count, bool encrypts) {
    IMB_MGR *manager = lanes->manager;
    bool is_complete = true;
    size_t done = 0;
    for (size_t index = 0; index < count; index++) {
        const cs_message *message = &messages[index];
        IMB_JOB *job = IMB_GET_NEXT_JOB(manager);
        memset(job, 0, sizeof *job);
        job->src = message->input;
        if (encrypts) {
            job->cipher_mode = IMB_CIPHER_CBC;
            job->hash_alg = IMB_AUTH_NULL;
            job->dst = message->output;
            job->iv = message->vector;
            job->iv_len_in_bytes = 16;
            job->enc_keys = lanes->encryption_keys;
            job->dec_keys = lanes->decryption_keys;
            job->key_len_in_bytes = 32;
            job->msg_len_to_cipher_in_bytes = message->count;
        } else {
            job->cipher_mode = IMB_CIPHER_NULL;
            job->hash_alg = IMB_AUTH_HMAC_SHA_512;
            job->u.HMAC._hashed_auth_key_xor_ipad = lanes->inner;
            job->u.HMAC._hashed_auth_key_xor_opad = lanes->outer;
            job->auth_tag_output = message->output;
            job->auth_tag_output_len_in_bytes = SHA512_DIGEST_SIZE_IN_BYTES;
            job->msg_len_to_hash_in_bytes = message->count;
        }
        job->cipher_direction = IMB_DIR_ENCRYPT;
        job->chain_order = IMB_ORDER_CIPHER_HASH;
        for (job = IMB_SUBMIT_JOB(manager); job; job = IMB_GET_COMPLETED_JOB(manager)) {
            is_complete = is_complete && is_done(job);
            done++;
        }
    }
    for (IMB_JOB *job = IMB_FLUSH_JOB(manager); job; job = IMB_FLUSH_JOB(manager)) {
        is_complete = is_complete && is_done(job);
        done++;
    }
    return is_complete && done == count;
}

bool cs_lanes_encrypt(cs_lanes *lanes, const cs_message *messages, size_t count) {
    return run(lanes, messages, count, true);
}

bool cs_lanes_authenticate(cs_lanes *lanes, const cs_message *messages, size_t count) {
    return run(lanes, messages, count, false);
}

#else

cs_lanes *cs_lanes_open(const uint8_t *encryption_key, const uint8_t *authentication_key) { return 0; }
void cs_lanes_close(cs_lanes *lanes) {}
bool cs_lanes_encrypt(cs_lanes *lanes, const cs_message *messages, size_t count) { return false; }
bool cs_lanes_authenticate(cs_lanes *lanes, const cs_message *messages, size_t count) { return false; }

#endif
