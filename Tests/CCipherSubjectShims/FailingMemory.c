#include "FailingMemory.h"
#include "CCipherEngine.h"

#include <stdatomic.h>

static sqlite3_mem_methods original;
static int64_t failing_first;
static int failing_lasting;
static _Atomic int64_t count;

static int fails(void) {
    int64_t number = atomic_fetch_add(&count, 1) + 1;
    return failing_first > 0 && (number == failing_first || (failing_lasting && number > failing_first));
}

static void *allocate(int size) { return fails() ? 0 : original.xMalloc(size); }
static void *reallocate(void *memory, int size) { return fails() ? 0 : original.xRealloc(memory, size); }

int fm_install(int64_t first, int lasting) {
    failing_first = first;
    failing_lasting = lasting;
    int result = sqlite3_config(SQLITE_CONFIG_GETMALLOC, &original);
    if (result != SQLITE_OK) return result;
    sqlite3_mem_methods methods = original;
    methods.xMalloc = allocate;
    methods.xRealloc = reallocate;
    return sqlite3_config(SQLITE_CONFIG_MALLOC, &methods);
}

int64_t fm_count(void) { return count; }
