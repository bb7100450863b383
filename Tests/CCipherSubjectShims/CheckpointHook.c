#include "CheckpointHook.h"
#include "CCipherEngine.h"

// Source: SQLite, "WAL-mode File Format": the locks of the index of a log.
enum { WRITER_LOCK = 0, CHECKPOINT_LOCK = 1 };

static void (*hook)(int moment);
static int is_in_hook;
static sqlite3_file *checkpointing;
static int (*open_original)(sqlite3_vfs *, const char *, sqlite3_file *, int, int *);
static const sqlite3_io_methods *original;
static sqlite3_io_methods hooked;

static void tell(int moment) {
    if (is_in_hook) return;
    is_in_hook = 1;
    hook(moment);
    is_in_hook = 0;
}

static int shm_lock(sqlite3_file *file, int offset, int count, int flags) {
    // A recovery takes several locks at once.
    int is_checkpoint = offset == CHECKPOINT_LOCK && count == 1;
    if (flags == (SQLITE_SHM_LOCK | SQLITE_SHM_EXCLUSIVE)) {
        if (is_checkpoint) tell(CH_BEGINS);
        if (offset == WRITER_LOCK && file == checkpointing) tell(CH_LOCKS_WRITER);
    }
    int result = original->xShmLock(file, offset, count, flags);
    if (is_checkpoint && !is_in_hook) {
        checkpointing = flags & SQLITE_SHM_LOCK && result == SQLITE_OK ? file : 0;
    }
    return result;
}

// SQLite returns no page here, but reports that the pages it was given are outdated.
static int unfetch(sqlite3_file *file, sqlite3_int64 offset, void *page) {
    if (!page && file == checkpointing) tell(CH_HAS_READ_HEADER);
    return original->xUnfetch(file, offset, page);
}

static int open_hooked(sqlite3_vfs *files, const char *name, sqlite3_file *file, int flags, int *granted) {
    int result = open_original(files, name, file, flags, granted);
    if (result != SQLITE_OK || !(flags & SQLITE_OPEN_MAIN_DB)) return result;
    if (!original) {
        original = file->pMethods;
        hooked = *original;
        hooked.xShmLock = shm_lock;
        hooked.xUnfetch = unfetch;
    }
    // Files on other file systems have different methods.
    if (file->pMethods == original) file->pMethods = &hooked;
    return result;
}

int ch_install(void (*told)(int moment)) {
    sqlite3_vfs *files = sqlite3_vfs_find(0);
    if (!files || hook) return 0;
    hook = told;
    open_original = files->xOpen;
    files->xOpen = open_hooked;
    return 1;
}
