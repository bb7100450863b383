// Since OpenSSL 3 the bytes come from a provider. Replacing them with a function is deprecated, but works.
#define OPENSSL_SUPPRESS_DEPRECATED
#include "Repeatability.h"
#include "CCipherEngine.h"

#include <openssl/rand.h>
#include <string.h>

static int fill(unsigned char *bytes, int count) {
    memset(bytes, 0x5a, (size_t)count);
    return 1;
}

static int ready(void) { return 1; }

static int fill_for_sqlite(sqlite3_vfs *files, int count, char *bytes) {
    (void)files;
    fill((unsigned char *)bytes, count);
    return count;
}

// 2020-01-01, as a Julian day in milliseconds.
static int tell_time(sqlite3_vfs *files, sqlite3_int64 *time) {
    (void)files;
    *time = INT64_C(212444596800000);
    return SQLITE_OK;
}

int rp_install(void) {
    static RAND_METHOD method = {.bytes = fill, .pseudorand = fill, .status = ready};
    sqlite3_vfs *files = sqlite3_vfs_find(0);
    if (!files || files->iVersion < 2 || RAND_set_rand_method(&method) != 1) return 0;
    files->xRandomness = fill_for_sqlite;
    files->xCurrentTimeInt64 = tell_time;
    // SQLite's files are the same when it starts again, which is also tested.
    return sqlite3_shutdown() == SQLITE_OK;
}
