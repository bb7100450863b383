#ifndef FAILING_MEMORY_H
#define FAILING_MEMORY_H

#include <stdint.h>

// Puts an allocator of ours before SQLite's own, which gives nothing at one allocation or from it on. Returns the result
// of sqlite3_config; the library must not be in use yet.
//
// first: the number of the allocation that fails, counted from 1; 0 for none, which only counts.
// lasting: whether every later one fails too.
int fm_install(int64_t first, int lasting);

// How many allocations were asked for since fm_install.
int64_t fm_count(void);

#endif
