#ifndef CSQLCIPHER_SHIM_H
#define CSQLCIPHER_SHIM_H

// Without this definition the header hides sqlite3_key_v2.
#ifndef SQLITE_HAS_CODEC
#define SQLITE_HAS_CODEC 1
#endif
#include <sqlite3.h>

#endif
