// Implements the declarations in CommonCrypto.h and Darwin.h with libcrypto, as far as the tests of CipherPrimitives need.
#include "CommonCrypto.h"
#include "Darwin.h"

#include <limits.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <string.h>

enum { failed = -4300 };

CCRNGStatus CCRandomGenerateBytes(void *bytes, size_t count) {
    return count <= INT_MAX && RAND_bytes(bytes, (int)count) == 1 ? kCCSuccess : failed;
}

CCCryptorStatus CCCryptorCreate(CCOperation op, CCAlgorithm alg, CCOptions options, const void *key, size_t keyLength,
    const void *iv, CCCryptorRef *cryptorRef) {
    EVP_CIPHER_CTX *context = EVP_CIPHER_CTX_new();
    *cryptorRef = (CCCryptorRef)context;
    return alg == kCCAlgorithmAES && options == 0 && keyLength == kCCKeySizeAES256 && context
                && EVP_CipherInit_ex(context, EVP_aes_256_cbc(), 0, key, iv, op == kCCEncrypt) == 1
                && EVP_CIPHER_CTX_set_padding(context, 0) == 1
            ? kCCSuccess
            : failed;
}

CCCryptorStatus CCCryptorReset(CCCryptorRef cryptorRef, const void *iv) {
    return EVP_CipherInit_ex((EVP_CIPHER_CTX *)cryptorRef, 0, 0, 0, iv, -1) == 1 ? kCCSuccess : failed;
}

CCCryptorStatus CCCryptorUpdate(CCCryptorRef cryptorRef, const void *dataIn, size_t dataInLength, void *dataOut,
    size_t dataOutAvailable, size_t *dataOutMoved) {
    int moved = 0;
    if (dataInLength > dataOutAvailable || dataInLength > INT_MAX) return failed;
    if (EVP_CipherUpdate((EVP_CIPHER_CTX *)cryptorRef, dataOut, &moved, dataIn, (int)dataInLength) != 1) return failed;
    *dataOutMoved = (size_t)moved;
    return kCCSuccess;
}

CCCryptorStatus CCCryptorRelease(CCCryptorRef cryptorRef) {
    EVP_CIPHER_CTX_free((EVP_CIPHER_CTX *)cryptorRef);
    return kCCSuccess;
}

// The context contains a libcrypto context from the beginning of a message to its end.
void CCHmacInit(CCHmacContext *ctx, CCHmacAlgorithm algorithm, const void *key, size_t keyLength) {
    const EVP_MD *digest =
        algorithm == kCCHmacAlgSHA1 ? EVP_sha1() : algorithm == kCCHmacAlgSHA256 ? EVP_sha256() : EVP_sha512();
    EVP_PKEY *made = EVP_PKEY_new_raw_private_key(EVP_PKEY_HMAC, 0, key, keyLength);
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    EVP_DigestSignInit(context, 0, digest, 0, made);
    EVP_PKEY_free(made);
    memcpy(ctx, &context, sizeof context);
}

void CCHmacUpdate(CCHmacContext *ctx, const void *data, size_t dataLength) {
    EVP_MD_CTX *context;
    memcpy(&context, ctx, sizeof context);
    EVP_DigestSignUpdate(context, data, dataLength);
}

void CCHmacFinal(CCHmacContext *ctx, void *macOut) {
    EVP_MD_CTX *context;
    size_t count = EVP_MAX_MD_SIZE;
    memcpy(&context, ctx, sizeof context);
    EVP_DigestSignFinal(context, macOut, &count);
    EVP_MD_CTX_free(context);
}

int CCKeyDerivationPBKDF(CCPBKDFAlgorithm algorithm, const char *password, size_t passwordLen, const uint8_t *salt,
    size_t saltLen, CCPseudoRandomAlgorithm prf, unsigned rounds, uint8_t *derivedKey, size_t derivedKeyLen) {
    const EVP_MD *digest =
        prf == kCCPRFHmacAlgSHA1 ? EVP_sha1() : prf == kCCPRFHmacAlgSHA256 ? EVP_sha256() : EVP_sha512();
    return algorithm == kCCPBKDF2
                && PKCS5_PBKDF2_HMAC(password, (int)passwordLen, salt, (int)saltLen, (int)rounds, digest,
                       (int)derivedKeyLen, derivedKey) == 1
            ? kCCSuccess
            : failed;
}

unsigned char *CC_SHA256(const void *data, CC_LONG len, unsigned char *md) {
    return EVP_Digest(data, len, md, 0, EVP_sha256(), 0) == 1 ? md : 0;
}

int memset_s(void *bytes, size_t size, int value, size_t count) {
    if (value != 0 || count > size) return failed;
    OPENSSL_cleanse(bytes, count);
    return 0;
}

int timingsafe_bcmp(const void *left, const void *right, size_t count) { return CRYPTO_memcmp(left, right, count); }
