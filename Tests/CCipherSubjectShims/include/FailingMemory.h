#ifndef FAILING_MEMORY_H
#define FAILING_MEMORY_H

#include <stdint.h>

// Puts our own allocator before SQLite's. It returns nothing at one allocation, or at that allocation and all later
// ones. Returns the result of sqlite3_config; the library must not be in use yet.
//
// first: the number of the allocation that fails, counted from 1; 0 for none, which only counts.
// lasting: whether every later one fails too.
int fm_install(int64_t first, int lasting);

// Returns how many allocations were requested since fm_install.
int64_t fm_count(void);

#endif
