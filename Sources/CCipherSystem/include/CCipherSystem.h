#ifndef CCIPHER_SYSTEM_H
#define CCIPHER_SYSTEM_H

#include <getopt.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/xattr.h>

// Renames a file inside a folder, and fails with EEXIST if the new name is taken. Returns 0, or -1 with errno set.
int cs_rename_noreplace(int folder, const char *from, const char *to);

// Exchanges two names in a folder atomically. Returns 0, or -1 with errno set: EINVAL or ENOSYS if that is not
// supported.
int cs_rename_exchange(int folder, const char *one, const char *other);

// Opens a new file without a name for reading and writing, with mode 0600. Returns -1 if the file system does not
// support such files.
int cs_open_nameless(int folder);

// Gives such a file a name in a folder, if the name is free. Returns 0, or -1 with errno set: EEXIST if it is taken.
int cs_name_nameless(int file, int folder, const char *name);

// Opens a file for neither reading nor writing, so that the descriptor identifies the same file whatever has its name
// later; links are not followed. Closing the descriptor drops no lock. Returns -1 with ENOTSUP if the system has no
// such descriptors.
int cs_open_pin(int folder, const char *name);

// Calls for extended attributes, with one signature on Linux and Apple platforms. Symbolic links are followed.
ssize_t cs_listxattr(const char *path, char *names, size_t size);
ssize_t cs_getxattr(const char *path, const char *name, void *value, size_t size);
int cs_fsetxattr(int file, const char *name, const void *value, size_t size);
int cs_fremovexattr(int file, const char *name);

// Returns whether a file is on a local file system, where the kernel knows about every open descriptor, except for
// those of NFS clients to which this machine exports it; 1 if the system has no leases.
int cs_lease_is_local(int descriptor);
// Takes a write lease (F_SETLEASE), whose end is announced by a signal that is ignored by default. Returns 0, or -1
// with errno set: EAGAIN if the file is open elsewhere, ENOTSUP if the system has no leases.
int cs_lease_take(int descriptor);
// Returns whether the lease is still held and no one is waiting for its end.
int cs_lease_is_whole(int descriptor);
void cs_lease_end(int descriptor);

// Writes an identifier of the current boot of the system, as 36 characters and a NUL. Returns 0, or -1 if the system
// does not provide one.
int cs_boot_identity(char identity[37]);

// Makes a file's bytes or a folder's names durable on the disk itself, not just in the drive's cache. Returns 0, or -1
// with errno set.
int cs_sync_to_disk(int descriptor);

// Asks the system to begin to write a part of a file to the disk, without waiting for it. Does nothing where there is no
// such call.
void cs_begin_writing(int descriptor, off_t offset, off_t count);

// Takes the exclusive lock of an SQLite database (F_SETLK). Returns 0, or -1 with errno set.
int cs_lock_database(int descriptor);

// Starts a detached thread that calls `body` with `argument`. The name is truncated to the system's limit; the stack
// size is in bytes. Returns 0, or an error number.
int cs_thread_start(const char *name, size_t stack, void *argument, void (*body)(void *));

// Opens a placeholder for each closed standard stream, which can be used neither for reading nor for writing. Otherwise
// a file that is opened later would get the stream's number, and messages would be written into that file.
void cs_open_standard_streams(void);

// If the process's address space is limited, keeps glibc from trying to create a separate heap for each thread. glibc
// maps 128 MB for that, and if there is no room, it tries again at every allocation. Otherwise, makes glibc keep the
// memory that one file needed for the next one: returning memory and clearing it again takes a tenth of the time needed
// for a small file.
void cs_fit_memory_to_limit(void);

// Returns whether something is mounted at a path, which is not followed if it is a symbolic link: 1 or 0; -1 if the
// system cannot tell.
int cs_is_mount_point(const char *path);

// Limits the number of files that the process may have open at a time; -1 with errno set if the system refuses.
int cs_limit_open_files(int most);

// The maximum length of a line that a terminal passes on without cutting it. Source: termios(3), "Canonical and
// noncanonical mode"; on Apple platforms, MAX_CANON.
#if defined(__APPLE__)
#define CS_LONGEST_TERMINAL_LINE 1023
#else
#define CS_LONGEST_TERMINAL_LINE 4094
#endif

// Prints a prompt to standard error and reads a line from a terminal without echo, as readpassphrase(3) does: the
// terminal itself edits the line. The terminal's settings are restored before this returns, and before a signal ends or
// stops the process; when a stopped process continues, the prompt is repeated. Must not be called while another thread
// may receive the signals.
//
// Returns the length of the line without its newline, of which at most `size` bytes are stored: a longer line is
// counted, not cut. Returns -1 with errno set if the line cannot be read.
ssize_t cs_read_hidden_line(int terminal, const char *prompt, char *line, size_t size);

// Forbids what would show keys and rows after a crash: core files, and the backtrace of Swift's runtime, which prints the
// memory that registers point to. On Linux, also makes the process not dumpable: a crash handler of the system gets no
// copy of its memory either, and no other process of the same user can read its memory or trace it.
void cs_protect_memory(void);

// Sets the name that Linux shows for the process: a program that is started through /proc has the name "exe" otherwise.
void cs_name_process(const char *name);

// Limits the memory that the process can write to, without its stack and without what it shares. Linux counts pages that
// were mapped, whether or not they were used, but not the address space that malloc reserves for each thread. Has no
// effect on other systems. Returns 0, or -1 with errno set.
int cs_limit_memory(int64_t bytes);

// Makes SIGXCPU end the process when it has used this much more processor time. Returns 0, or -1 with errno set.
int cs_limit_processor_time(int64_t seconds);

// Creates a pipe whose ends are closed in programs that this process executes. Returns 0, or -1 with errno set.
int cs_pipe(int ends[2]);

// A child process: the pipe that it reads as its standard input, and the socket that it has as its standard output.
struct cs_child {
    pid_t process;
    int input;
    int channel;
};

// Starts this process's own program again with these arguments. Returns 0, or an error number.
int cs_child_start(char *const *argv, struct cs_child *child);

// Returns whether a descriptor is a socket.
int cs_is_socket(int descriptor);

// Sends bytes over a local socket, and a duplicate of a descriptor with them unless it is -1. Returns the number of bytes
// that were sent, or -1 with errno set.
ssize_t cs_send(int channel, const void *bytes, size_t count, int descriptor);

// Receives bytes, and the descriptor that was sent with them, or -1. Returns the number of bytes, 0 at the end, or -1
// with errno set.
ssize_t cs_receive(int channel, void *bytes, size_t count, int *descriptor);

// What getopt_long(3) found. `index` is an index into the caller's options, or -1 if it was not reported.
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
    // The option's value, the operand, or the unknown long option; part of the caller's `argv`.
    const char *text;
    // The unknown short option, or 0.
    int letter;
    // At the end: the first argument after `--`.
    int rest;
};

// Begins a scan. getopt_long keeps its position in global variables, so there can be only one scan at a time in a
// process.
void cs_arguments_begin(void);

// Returns the next argument, and prints nothing to stderr. Each option's `val` must be CS_OPTION_BASE plus its index.
#define CS_OPTION_BASE 1000
struct cs_argument cs_arguments_next(int argc, char **argv, const struct option *options);

#endif
