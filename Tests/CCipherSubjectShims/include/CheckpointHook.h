#ifndef CHECKPOINT_HOOK_H
#define CHECKPOINT_HOOK_H

// A moment of a checkpoint, as the methods of the database file show it.
enum {
    // The connection is about to take the lock of the checkpointer.
    CH_BEGINS,
    // It is about to take the lock of the writer too, as RESTART and TRUNCATE do.
    CH_LOCKS_WRITER,
    // It has read the header of the log, which had changed since it last looked, and has not used it yet.
    CH_HAS_READ_HEADER,
};

// Has `hook` called at these moments of every checkpoint of this process, but for those that run in the hook itself.
//
// SQLite's default file layer is changed for good, so that every file opened from now on has other methods. One thread at
// a time may checkpoint. Returns whether that could be done.
int ch_install(void (*hook)(int moment));

#endif
