// SQLite's header as SQLCipher brings it, on Apple platforms in a framework.
#ifndef SQLITE_HAS_CODEC
#define SQLITE_HAS_CODEC 1
#endif
#if __has_include(<SQLCipher/sqlite3.h>)
#include <SQLCipher/sqlite3.h>
#else
#include <sqlite3.h>
#endif
