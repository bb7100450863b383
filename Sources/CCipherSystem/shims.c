#define _GNU_SOURCE
#include "CCipherSystem.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#ifdef __GLIBC__
#include <malloc.h>
#endif

#ifdef __APPLE__
#include <sys/sysctl.h>
#endif

// CIPHERSTORE_PORTABLE takes away what Apple's systems or old kernels lack; see Package.swift.
#if defined(__linux__) && !defined(CIPHERSTORE_PORTABLE)
#define HAS_LINUX 1
#include <linux/fs.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#endif

#if !defined(__APPLE__)
// linkat(2) fails if the new name exists, so the two calls below never replace a file either. Only a crash between them
// leaves both names, and the caller removes the old one.
static int rename_by_link(int folder, const char *from, const char *to) {
    if (linkat(folder, from, folder, to, 0) != 0) return -1;
    return unlinkat(folder, from, 0);
}
#endif

int cs_rename_noreplace(int folder, const char *from, const char *to) {
#if defined(__APPLE__)
    return renameatx_np(folder, from, folder, to, RENAME_EXCL);
#elif !defined(HAS_LINUX)
    return rename_by_link(folder, from, to);
#else
    long result = syscall(SYS_renameat2, folder, from, folder, to, RENAME_NOREPLACE);
    if (result == 0) return 0;
    // Old kernels and some file systems do not support the flag.
    if (errno == ENOSYS || errno == EINVAL) return rename_by_link(folder, from, to);
    return -1;
#endif
}

int cs_rename_exchange(int folder, const char *one, const char *other) {
#if defined(__APPLE__)
    return renameatx_np(folder, one, folder, other, RENAME_SWAP);
#elif !defined(HAS_LINUX)
    (void)folder, (void)one, (void)other;
    errno = ENOTSUP;
    return -1;
#else
    return (int)syscall(SYS_renameat2, folder, one, folder, other, RENAME_EXCHANGE);
#endif
}

int cs_open_nameless(int folder) {
#if defined(HAS_LINUX) && defined(O_TMPFILE)
    return openat(folder, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
#else
    (void)folder;
    errno = ENOTSUP;
    return -1;
#endif
}

int cs_name_nameless(int file, int folder, const char *name) {
    // linkat(2) accepts the descriptor itself (AT_EMPTY_PATH) only from privileged processes.
    char path[32];
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    return linkat(AT_FDCWD, path, folder, name, AT_SYMLINK_FOLLOW);
}

int cs_open_pin(int folder, const char *name) {
#if defined(HAS_LINUX) && defined(O_PATH)
    return openat(folder, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
#else
    (void)folder;
    (void)name;
    errno = ENOTSUP;
    return -1;
#endif
}

#if defined(__APPLE__)
ssize_t cs_listxattr(const char *path, char *names, size_t size) { return listxattr(path, names, size, 0); }
ssize_t cs_getxattr(const char *path, const char *name, void *value, size_t size) {
    return getxattr(path, name, value, size, 0, 0);
}
int cs_fsetxattr(int file, const char *name, const void *value, size_t size) {
    return fsetxattr(file, name, value, size, 0, 0);
}
int cs_fremovexattr(int file, const char *name) { return fremovexattr(file, name, 0); }
#elif !defined(HAS_LINUX)
static int no_attributes(void) {
    errno = ENOTSUP;
    return -1;
}
ssize_t cs_listxattr(const char *path, char *names, size_t size) {
    (void)path, (void)names, (void)size;
    return no_attributes();
}
ssize_t cs_getxattr(const char *path, const char *name, void *value, size_t size) {
    (void)path, (void)name, (void)value, (void)size;
    return no_attributes();
}
int cs_fsetxattr(int file, const char *name, const void *value, size_t size) {
    (void)file, (void)name, (void)value, (void)size;
    return no_attributes();
}
int cs_fremovexattr(int file, const char *name) {
    (void)file, (void)name;
    return no_attributes();
}
#else
ssize_t cs_listxattr(const char *path, char *names, size_t size) { return listxattr(path, names, size); }
ssize_t cs_getxattr(const char *path, const char *name, void *value, size_t size) {
    return getxattr(path, name, value, size);
}
int cs_fsetxattr(int file, const char *name, const void *value, size_t size) {
    return fsetxattr(file, name, value, size, 0);
}
int cs_fremovexattr(int file, const char *name) { return fremovexattr(file, name); }
#endif

#if !defined(F_FULLFSYNC) && !defined(HAS_LINUX)
// Linux refuses Apple's request, so fsync(2) follows; a test counts both.
#define F_FULLFSYNC 51
#endif
int cs_sync_to_disk(int descriptor) {
#if defined(F_FULLFSYNC)
    // On Apple's systems, fsync(2) alone leaves the bytes in the drive's cache.
    if (fcntl(descriptor, F_FULLFSYNC) == 0) return 0;
#endif
    return fsync(descriptor);
}

void cs_begin_writing(int descriptor, off_t offset, off_t count) {
#if defined(HAS_LINUX)
    (void)sync_file_range(descriptor, offset, count, SYNC_FILE_RANGE_WRITE);
#else
    (void)descriptor, (void)offset, (void)count;
#endif
}

#if defined(HAS_LINUX)
// FUSE and network file systems grant leases, too, but know only about descriptors on this machine. Source: statfs(2).
int cs_lease_is_local(int descriptor) {
    struct statfs status;
    if (fstatfs(descriptor, &status) != 0) return 0;
    switch ((unsigned)status.f_type) {
    case 0xEF53u:     // ext2, ext3, ext4
    case 0x58465342u: // XFS
    case 0x9123683Eu: // btrfs
    case 0xF2F52010u: // F2FS
    case 0x2FC12FC1u: // ZFS
    case 0xCA451A4Eu: // bcachefs
    case 0x3153464Au: // JFS
    case 0x01021994u: // tmpfs
    case 0x858458F6u: // ramfs
    case 0x794C7630u: // overlay
    case 0x4D44u:     // FAT
    case 0x2011BAB0u: // exFAT
        return 1;
    default:
        return 0;
    }
}
int cs_lease_take(int descriptor) {
    // The default, SIGIO, would terminate a process that does not handle it.
    if (fcntl(descriptor, F_SETSIG, SIGURG) != 0) return -1;
    return fcntl(descriptor, F_SETLEASE, F_WRLCK);
}
int cs_lease_is_whole(int descriptor) { return fcntl(descriptor, F_GETLEASE) == F_WRLCK; }
void cs_lease_end(int descriptor) { (void)fcntl(descriptor, F_SETLEASE, F_UNLCK); }
#else
int cs_lease_is_local(int descriptor) {
    (void)descriptor;
    return 1;
}
int cs_lease_take(int descriptor) {
    (void)descriptor;
    errno = ENOTSUP;
    return -1;
}
int cs_lease_is_whole(int descriptor) {
    (void)descriptor;
    return 0;
}
void cs_lease_end(int descriptor) { (void)descriptor; }
#endif

// The range covers the pending byte, the reserved byte and the shared bytes. Source: SQLite, "Database File Format",
// section 1.6, and os.h.
int cs_lock_database(int descriptor) {
    struct flock range = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0x40000000, .l_len = 512};
    return fcntl(descriptor, F_SETLK, &range);
}

int cs_boot_identity(char identity[37]) {
#if defined(__APPLE__)
    size_t size = 37;
    return sysctlbyname("kern.bootsessionuuid", identity, &size, NULL, 0) == 0 && size == 37 ? 0 : -1;
#elif !defined(HAS_LINUX)
    (void)identity;
    return -1;
#else
    int file = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    if (file < 0) return -1;
    ssize_t count = read(file, identity, 36);
    close(file);
    identity[36] = 0;
    return count == 36 ? 0 : -1;
#endif
}

struct thread_start {
    char name[64];
    void *argument;
    void (*body)(void *);
};

// On Apple platforms, only the thread itself can set its name.
static void *thread_main(void *context) {
    struct thread_start start = *(struct thread_start *)context;
    free(context);
#if defined(__APPLE__)
    pthread_setname_np(start.name);
#else
    start.name[15] = 0;
    pthread_setname_np(pthread_self(), start.name);
#endif
    start.body(start.argument);
    return NULL;
}

int cs_thread_start(const char *name, size_t stack, void *argument, void (*body)(void *)) {
    struct thread_start *start = calloc(1, sizeof *start);
    if (start == NULL) return ENOMEM;
    strncpy(start->name, name, sizeof start->name - 1);
    start->argument = argument;
    start->body = body;

    pthread_attr_t attributes;
    int result = pthread_attr_init(&attributes);
    if (result == 0) {
        pthread_t thread;
        result = pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
        if (result == 0) result = pthread_attr_setstacksize(&attributes, stack);
        if (result == 0) result = pthread_create(&thread, &attributes, thread_main, start);
        pthread_attr_destroy(&attributes);
    }
    if (result != 0) free(start);
    return result;
}

void cs_open_standard_streams(void) {
    for (int stream = 0; stream <= 2; stream++) {
        // open(2) returns the lowest free number.
        if (fcntl(stream, F_GETFD) == -1 && errno == EBADF) open("/dev/null", stream == 0 ? O_WRONLY : O_RDONLY);
    }
}

void cs_fit_memory_to_limit(void) {
#if defined(__GLIBC__) && defined(M_ARENA_MAX)
    struct rlimit limit;
    if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
        mallopt(M_ARENA_MAX, 1);
        return;
    }
    mallopt(M_MMAP_THRESHOLD, 1 << 20);
    mallopt(M_TRIM_THRESHOLD, 16 << 20);
#endif
}

// Source: statx(2), STATX_ATTR_MOUNT_ROOT, since Linux 5.8.
int cs_is_mount_point(const char *path) {
#if defined(HAS_LINUX) && defined(STATX_TYPE)
    const uint64_t mount_root = 0x2000;
    struct statx status;
    if (statx(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, STATX_TYPE, &status) != 0) return -1;
    if (!(status.stx_attributes_mask & mount_root)) return -1;
    return (status.stx_attributes & mount_root) != 0;
#else
    (void)path;
    return -1;
#endif
}

int cs_limit_open_files(int most) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return -1;
    if (limit.rlim_cur > (rlim_t)most) limit.rlim_cur = (rlim_t)most;
    return setrlimit(RLIMIT_NOFILE, &limit);
}

// The signals that would end or stop the process while the terminal does not echo. SIGTTIN and SIGTTOU are not among
// them: they stop a process in the background before it changes the terminal.
static const int prompt_signals[] = {SIGALRM, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP};
enum { PROMPT_SIGNALS = sizeof prompt_signals / sizeof *prompt_signals };
static volatile sig_atomic_t prompt_signal;

static void note_prompt_signal(int number) {
    // A stop must not hide a signal that ends the process.
    if (prompt_signal == 0 || prompt_signal == SIGTSTP) prompt_signal = number;
}

// Signals are delivered only during the wait, so that none can arrive between the check and the read.
static ssize_t read_line(int terminal, const sigset_t *mask, char *line, size_t size) {
    size_t count = 0;
    for (;;) {
        fd_set readable;
        FD_ZERO(&readable);
        FD_SET(terminal, &readable);
        int ready = pselect(terminal + 1, &readable, NULL, NULL, NULL, mask);
        if (prompt_signal != 0 || (ready < 0 && errno != EINTR)) return -1;
        char byte = 0;
        ssize_t found = ready < 0 ? -1 : read(terminal, &byte, 1);
        if (found < 0 && errno == EINTR) continue;
        if (found < 0) return -1;
        if (found == 0 || byte == '\n' || byte == '\r') return (ssize_t)count;
        if (count < size) line[count] = byte;
        count++;
    }
}

static void print_to_terminal(const char *text) {
    ssize_t written = write(STDERR_FILENO, text, strlen(text));
    (void)written;
}

// Reads one line while the signals are blocked.
static ssize_t read_line_without_echo(
    int terminal, const char *prompt, const sigset_t *mask, char *line, size_t size) {
    struct termios before, hidden;
    if (tcgetattr(terminal, &before) != 0) return -1;
    hidden = before;
    hidden.c_lflag &= ~(tcflag_t)(ECHO | ECHONL);
    if (tcsetattr(terminal, TCSAFLUSH, &hidden) != 0) return -1;
    print_to_terminal(prompt);
    ssize_t count = read_line(terminal, mask, line, size);
    int reason = errno;
    while (tcsetattr(terminal, TCSAFLUSH, &before) != 0 && errno == EINTR) {}
    print_to_terminal("\n");
    errno = reason;
    return count;
}

// Source: OpenBSD, readpassphrase.c. Unlike there, the signals are blocked except during the wait for input.
ssize_t cs_read_hidden_line(int terminal, const char *prompt, char *line, size_t size) {
    sigset_t blocked, mask, open;
    sigemptyset(&blocked);
    for (int i = 0; i < PROMPT_SIGNALS; i++) sigaddset(&blocked, prompt_signals[i]);
    // The thread that started this process may have blocked the signals, as the threads of libdispatch do.
    pthread_sigmask(SIG_BLOCK, &blocked, &mask);
    open = mask;
    for (int i = 0; i < PROMPT_SIGNALS; i++) sigdelset(&open, prompt_signals[i]);
    ssize_t count;
    int number;
    do {
        struct sigaction before[PROMPT_SIGNALS], noting = {.sa_handler = note_prompt_signal};
        noting.sa_mask = blocked;
        pthread_sigmask(SIG_BLOCK, &blocked, NULL);
        prompt_signal = 0;
        for (int i = 0; i < PROMPT_SIGNALS; i++) {
            sigaction(prompt_signals[i], NULL, &before[i]);
            // A signal that the caller ignores, as nohup(1) does, stays ignored.
            if (before[i].sa_handler != SIG_IGN) sigaction(prompt_signals[i], &noting, NULL);
        }
        count = read_line_without_echo(terminal, prompt, &open, line, size);
        int reason = errno;
        number = prompt_signal;
        for (int i = 0; i < PROMPT_SIGNALS; i++) sigaction(prompt_signals[i], &before[i], NULL);
        pthread_sigmask(SIG_SETMASK, &open, NULL);
        if (number != 0) kill(getpid(), number);
        pthread_sigmask(SIG_SETMASK, &mask, NULL);
        errno = number != 0 ? EINTR : reason;
    } while (count < 0 && number == SIGTSTP);
    return count;
}

void cs_arguments_begin(void) {
    opterr = 0;
#if defined(__APPLE__)
    optreset = 1;
    optind = 1;
#else
    optind = 0;
#endif
}

struct cs_argument cs_arguments_next(int argc, char **argv, const struct option *options) {
    // "-": operands are returned in their order, whatever POSIXLY_CORRECT says. ":": a missing value is reported
    // separately.
    int found = getopt_long(argc, argv, "-:", options, NULL);
    struct cs_argument result = {CS_ARGUMENT_OPTION, -1, optarg, 0, argc};
    if (found == -1) {
        result.kind = CS_ARGUMENT_END;
        result.rest = optind;
    } else if (found == 1) {
        result.kind = CS_ARGUMENT_OPERAND;
    } else if (found >= CS_OPTION_BASE) {
        result.index = found - CS_OPTION_BASE;
    } else if (optopt >= CS_OPTION_BASE) {
        result.kind = found == ':' ? CS_ARGUMENT_VALUE_MISSING : CS_ARGUMENT_VALUE_UNWANTED;
        result.index = optopt - CS_OPTION_BASE;
    } else {
        result.kind = CS_ARGUMENT_UNKNOWN;
        result.letter = optopt;
        result.text = optopt == 0 ? argv[optind - 1] : NULL;
    }
    return result;
}
