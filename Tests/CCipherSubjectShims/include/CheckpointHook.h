#ifndef CHECKPOINT_HOOK_H
#define CHECKPOINT_HOOK_H

// A point in a checkpoint, as the methods of the database file see it.
enum {
    // The connection is about to take the checkpointer's lock.
    CH_BEGINS,
    // The connection is about to take the writer's lock too, as RESTART and TRUNCATE do.
    CH_LOCKS_WRITER,
    // The connection has read the header of the log, which had changed since it last read the header, and has not used
    // it yet.
    CH_HAS_READ_HEADER,
};

// Calls `hook` at these points of every checkpoint in this process, except for those that run in the hook itself.
//
// SQLite's default file layer changes for good: every file opened from now on has other methods. One thread at a time
// may checkpoint. Returns whether the change succeeded.
int ch_install(void (*hook)(int moment));

#endif
