#include "CCipherEngine.h"

#include <pthread.h>
#include <string.h>
#include <time.h>

static int config(sqlite3 *db, int option, int enabled) { return sqlite3_db_config(db, option, enabled, (int *)0); }

int cs_key(sqlite3 *db, const char *schema, const void *key, int count) {
    return sqlite3_key_v2(db, schema, key, count);
}

int cs_config_double_quoted_strings(sqlite3 *db, int in_definitions, int in_queries) {
#ifdef SQLITE_DBCONFIG_DQS_DDL
    int result = config(db, SQLITE_DBCONFIG_DQS_DDL, in_definitions);
    return result == SQLITE_OK ? config(db, SQLITE_DBCONFIG_DQS_DML, in_queries) : result;
#else
    return SQLITE_ERROR;
#endif
}

int cs_config_legacy_file_format(sqlite3 *db, int enabled) {
#ifdef SQLITE_DBCONFIG_LEGACY_FILE_FORMAT
    return config(db, SQLITE_DBCONFIG_LEGACY_FILE_FORMAT, enabled);
#else
    return SQLITE_ERROR;
#endif
}

int cs_config_defensive(sqlite3 *db, int enabled) {
#ifdef SQLITE_DBCONFIG_DEFENSIVE
    return config(db, SQLITE_DBCONFIG_DEFENSIVE, enabled);
#else
    return SQLITE_ERROR;
#endif
}

int cs_config_trusted_schema(sqlite3 *db, int enabled) {
#ifdef SQLITE_DBCONFIG_TRUSTED_SCHEMA
    return config(db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, enabled);
#else
    return SQLITE_ERROR;
#endif
}

int cs_log_index(sqlite3 *db, const char *schema, unsigned char header[48]) {
    sqlite3_file *file = 0;
    volatile void *index = 0;
    int result = sqlite3_file_control(db, schema, SQLITE_FCNTL_FILE_POINTER, &file);
    if (result != SQLITE_OK) return result;
    if (!file || !file->pMethods || file->pMethods->iVersion < 2 || !file->pMethods->xShmMap) return SQLITE_NOTFOUND;
    // The first region is already mapped by the connection, so nothing is created or extended.
    result = file->pMethods->xShmMap(file, 0, 32768, 0, &index);
    if (result != SQLITE_OK || !index) return result == SQLITE_OK ? SQLITE_NOTFOUND : result;
    // The header is stored twice, and a writer writes the second copy first.
    unsigned char second[48];
    for (int tries = 0; tries < 1000; tries++) {
        __sync_synchronize();
        memcpy(header, (const void *)index, 48);
        __sync_synchronize();
        memcpy(second, (const unsigned char *)index + 48, 48);
        if (memcmp(header, second, 48) == 0) return SQLITE_OK;
    }
    return SQLITE_BUSY;
}

int cs_open_without_links(void) {
#ifdef SQLITE_OPEN_NOFOLLOW
    return SQLITE_OPEN_NOFOLLOW;
#else
    return 0;
#endif
}

int cs_config_triggers(sqlite3 *db, int enabled) { return config(db, SQLITE_DBCONFIG_ENABLE_TRIGGER, enabled); }

// For these statements, an unknown function is the only SQLITE_ERROR, and it is not a failure.
static int prepared(sqlite3 *db, const char *sql, sqlite3_stmt **statement) {
    int result = sqlite3_prepare_v2(db, sql, -1, statement, 0);
    return result == SQLITE_ERROR ? SQLITE_NOTFOUND : result;
}

int cs_register_fts3_tokenizer(sqlite3 *db, const char *name, const cs_fts3_module *module) {
    sqlite3_stmt *statement = 0;
    int result = prepared(db, "SELECT fts3_tokenizer(?1, ?2)", &statement);
    if (result == SQLITE_NOTFOUND) return SQLITE_OK;
    if (result == SQLITE_OK) result = sqlite3_bind_text(statement, 1, name, -1, SQLITE_TRANSIENT);
    if (result == SQLITE_OK) result = sqlite3_bind_blob(statement, 2, &module, sizeof module, SQLITE_TRANSIENT);
    // The function takes any number for an address, so it is enabled for this statement only.
    if (result == SQLITE_OK) result = config(db, SQLITE_DBCONFIG_ENABLE_FTS3_TOKENIZER, 1);
    if (result == SQLITE_OK) sqlite3_step(statement);
    int finished = sqlite3_finalize(statement);
    config(db, SQLITE_DBCONFIG_ENABLE_FTS3_TOKENIZER, 0);
    return result == SQLITE_OK ? finished : result;
}

int cs_fts5_interface(sqlite3 *db, fts5_api **interface) {
    *interface = 0;
#if SQLITE_VERSION_NUMBER >= 3020000
    sqlite3_stmt *statement = 0;
    int result = prepared(db, "SELECT fts5(?1)", &statement);
    if (result == SQLITE_NOTFOUND) return SQLITE_OK;
    if (result == SQLITE_OK) result = sqlite3_bind_pointer(statement, 1, interface, "fts5_api_ptr", 0);
    if (result == SQLITE_OK) sqlite3_step(statement);
    int finished = sqlite3_finalize(statement);
    return result == SQLITE_OK ? finished : result;
#else
    (void)db;
    return SQLITE_OK;
#endif
}

void cs_forget_modules(sqlite3 *db) {
#if SQLITE_VERSION_NUMBER >= 3030000
    sqlite3_drop_modules(db, 0);
#else
    (void)db;
#endif
}

int cs_config_no_memory_statistics(void) { return sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0); }

void cs_result_json(sqlite3_context *context) { sqlite3_result_subtype(context, 'J'); }

double cs_processor_seconds(void) {
    struct timespec time = {0, 0};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

uintptr_t cs_this_thread(void) { return (uintptr_t)pthread_self(); }

uintptr_t cs_load(const uintptr_t *number) { return __atomic_load_n(number, __ATOMIC_ACQUIRE); }

void cs_store(uintptr_t *number, uintptr_t value) { __atomic_store_n(number, value, __ATOMIC_RELEASE); }

sqlite3_destructor_type cs_transient_destructor(void) { return SQLITE_TRANSIENT; }
