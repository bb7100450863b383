#include "CCipherEngine.h"

#include <pthread.h>

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

int cs_open_without_links(void) {
#ifdef SQLITE_OPEN_NOFOLLOW
    return SQLITE_OPEN_NOFOLLOW;
#else
    return 0;
#endif
}

int cs_config_triggers(sqlite3 *db, int enabled) { return config(db, SQLITE_DBCONFIG_ENABLE_TRIGGER, enabled); }

int cs_config_no_memory_statistics(void) { return sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0); }

uintptr_t cs_this_thread(void) { return (uintptr_t)pthread_self(); }

uintptr_t cs_load(const uintptr_t *number) { return __atomic_load_n(number, __ATOMIC_ACQUIRE); }

void cs_store(uintptr_t *number, uintptr_t value) { __atomic_store_n(number, value, __ATOMIC_RELEASE); }

sqlite3_destructor_type cs_transient_destructor(void) { return SQLITE_TRANSIENT; }
