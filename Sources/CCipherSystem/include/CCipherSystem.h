#ifndef CCIPHER_SYSTEM_H
#define CCIPHER_SYSTEM_H

#include <getopt.h>
#include <sys/types.h>
#include <sys/xattr.h>

// Renames a file inside a folder and fails with EEXIST where the new name is taken. Returns 0, or -1 with errno set.
int cs_rename_noreplace(int folder, const char *from, const char *to);

// Exchanges two names of a folder in one step. Returns 0, or -1 with errno set: EINVAL or ENOSYS where that cannot be done.
int cs_rename_exchange(int folder, const char *one, const char *other);

// Opens a new file without a name for reading and writing, of mode 0600. Returns -1 where the file system has none.
int cs_open_nameless(int folder);

// Gives such a file a name in a folder, where the name is free. Returns 0, or -1 with errno set: EEXIST where it is taken.
int cs_name_nameless(int file, int folder, const char *name);

// Opens a file so that it stays the same whatever has its name, for neither reading nor writing; links are not followed.
// Closing the descriptor drops no lock. Returns -1 with ENOTSUP where the system has no such descriptors.
int cs_open_pin(int folder, const char *name);

// Calls for extended attributes, with one signature on Linux and Apple platforms. Symbolic links are followed.
ssize_t cs_listxattr(const char *path, char *names, size_t size);
ssize_t cs_getxattr(const char *path, const char *name, void *value, size_t size);
int cs_fsetxattr(int file, const char *name, const void *value, size_t size);
int cs_fremovexattr(int file, const char *name);

// Whether a file is on a local file system, where the kernel knows of every opening but those of NFS clients to which this
// machine exports it.
int cs_lease_is_local(int descriptor);
// Takes a write lease (F_SETLEASE), whose end is announced by a signal that is ignored by default. Returns 0, or -1 with
// errno set: EAGAIN where the file is open elsewhere, ENOTSUP where the system has no leases.
int cs_lease_take(int descriptor);
// Whether the lease stands and nobody waits for its end.
int cs_lease_is_whole(int descriptor);
void cs_lease_end(int descriptor);

// Writes what tells this start of the system from every other one, as 36 characters and a NUL. Returns 0, or -1 where the
// system does not tell.
int cs_boot_identity(char identity[37]);

// Takes the exclusive lock of an SQLite database (F_SETLK). Returns 0, or -1 with errno set.
int cs_lock_database(int descriptor);

// Starts a detached thread that calls `body` with `argument`. The name is cut where the system takes no more of it; the
// stack is given in bytes. Returns 0, or the error's number.
int cs_thread_start(const char *name, size_t stack, void *argument, void (*body)(void *));

// Puts something in the place of a standard stream that is closed, which can be neither read nor written: a file that is
// opened later would get its number, and messages would be written into it.
void cs_open_standard_streams(void);

// Where the process's address space is limited, keeps glibc from trying a heap of its own for each thread. It maps 128 MB
// for that, and where there is no room it tries again at every allocation. Elsewhere it is to keep what one file needed for
// the next one: giving memory back and clearing it anew takes a tenth of the time of a small file.
void cs_fit_memory_to_limit(void);

// Whether something is mounted at a path, which is not followed where it is a symbolic link: 1 or 0; -1 where the system
// does not tell.
int cs_is_mount_point(const char *path);

// Lets the process have no more than so many files open at a time; -1 with errno where the system refuses.
int cs_limit_open_files(int most);

// What getopt_long(3) found. `index` counts in the caller's options and is -1 where it was not told.
enum cs_argument_kind {
    CS_ARGUMENT_OPTION,
    CS_ARGUMENT_OPERAND,
    CS_ARGUMENT_UNKNOWN,
    CS_ARGUMENT_VALUE_MISSING,
    CS_ARGUMENT_VALUE_UNWANTED,
    CS_ARGUMENT_END
};
struct cs_argument {
    enum cs_argument_kind kind;
    int index;
    // The option's value, the operand, or the long option that is not known; a part of the caller's `argv`.
    const char *text;
    // The short option that is not known, or 0.
    int letter;
    // At the end: the first argument behind `--`.
    int rest;
};

// Begins a scan. getopt_long keeps its place in global variables, so there is one scan at a time in a process.
void cs_arguments_begin(void);

// The next argument, without a word on stderr. Each option's `val` must be CS_OPTION_BASE plus its index.
#define CS_OPTION_BASE 1000
struct cs_argument cs_arguments_next(int argc, char **argv, const struct option *options);

#endif
