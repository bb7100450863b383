#ifndef CCIPHER_ENGINE_H
#define CCIPHER_ENGINE_H

#include <stdint.h>

// The engine's own interface: from the package SQLCipher.swift if that is linked, otherwise from the system's library.
#if defined(__APPLE__) || __has_include(<SQLCipher/sqlite3.h>)
#include <SQLCipher/sqlite3.h>
#else
#include <sqlite3.h>
#endif

// Calls sqlite3_key_v2, which the header declares only if SQLITE_HAS_CODEC is defined; a module does not see what its
// importer defines.
int cs_key(sqlite3 *db, const char *schema, const void *key, int count);

// Settings, each set through the variadic sqlite3_db_config. Each function returns SQLITE_OK, or SQLITE_ERROR if the
// engine is too old to have the setting.
int cs_config_double_quoted_strings(sqlite3 *db, int in_definitions, int in_queries);
int cs_config_legacy_file_format(sqlite3 *db, int enabled);
int cs_config_defensive(sqlite3 *db, int enabled);
int cs_config_trusted_schema(sqlite3 *db, int enabled);
int cs_config_triggers(sqlite3 *db, int enabled);

// Returns the flag for opening a file only if its path has no symbolic link, or 0 if the engine is too old to have it.
int cs_open_without_links(void);

// Copies the header of the index of a database's log, which all connections share: 48 bytes in this machine's byte
// order. The connection must be in a transaction. Returns SQLITE_NOTFOUND if it has no such index.
// Source: SQLite, "WAL-mode File Format", section 4.1.
int cs_log_index(sqlite3 *db, const char *schema, unsigned char header[48]);

// Removes all modules of virtual tables from a connection, except before SQLite 3.30.
void cs_forget_modules(sqlite3 *db);

// Turns off the library's memory statistics. Returns SQLITE_MISUSE if the library is already in use.
int cs_config_no_memory_statistics(void);

// Marks the result of a function as JSON.
void cs_result_json(sqlite3_context *context);

// Returns the processor time that the calling thread has used, in seconds.
double cs_processor_seconds(void);

// The calling thread's number, and access to a number that several threads read and write.
uintptr_t cs_this_thread(void);
uintptr_t cs_load(const uintptr_t *number);
void cs_store(uintptr_t *number, uintptr_t value);

// The tokenizer interface of FTS3 and FTS4, as in fts3_tokenizer.h, which is not installed with the engine. The last
// fields of a module, a tokenizer and a cursor belong to the caller.
typedef struct cs_fts3_module cs_fts3_module;
typedef struct {
    const cs_fts3_module *module;
    void *object;
} cs_fts3_tokenizer;
typedef struct {
    cs_fts3_tokenizer *tokenizer;
    void *object;
} cs_fts3_cursor;
struct cs_fts3_module {
    int version;
    int (*create)(int count, const char *const *arguments, cs_fts3_tokenizer **made);
    int (*destroy)(cs_fts3_tokenizer *tokenizer);
    int (*open)(cs_fts3_tokenizer *tokenizer, const char *text, int count, cs_fts3_cursor **opened);
    int (*close)(cs_fts3_cursor *cursor);
    int (*next)(cs_fts3_cursor *cursor, const char **term, int *count, int *start, int *end, int *position);
    void *object;
};

// Registers a tokenizer for FTS3 and FTS4; the module must outlive the connection. Does nothing if the engine has
// neither.
int cs_register_fts3_tokenizer(sqlite3 *db, const char *name, const cs_fts3_module *module);

// Finds FTS5's tokenizer interface; NULL if the engine does not have FTS5.
int cs_fts5_interface(sqlite3 *db, fts5_api **interface);

// Returns SQLITE_TRANSIENT, a cast that Swift cannot import.
sqlite3_destructor_type cs_transient_destructor(void);

#endif
