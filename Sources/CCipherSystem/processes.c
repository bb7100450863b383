#define _GNU_SOURCE
#include "CCipherSystem.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#ifdef __APPLE__
#include <TargetConditionals.h>
#include <mach-o/dyld.h>
#endif

#ifdef __linux__
#include <sys/auxv.h>
#include <sys/prctl.h>
#endif

extern char **environ;

void cs_protect_memory(void) {
    struct rlimit none = {0, 0};
    (void)setrlimit(RLIMIT_CORE, &none);
    const int crashes[] = {SIGQUIT, SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGTRAP};
    for (size_t index = 0; index < sizeof crashes / sizeof *crashes; index++) {
        struct sigaction action;
        if (sigaction(crashes[index], NULL, &action) != 0 || action.sa_handler == SIG_IGN) continue;
        (void)signal(crashes[index], SIG_DFL);
    }
#if defined(__linux__)
    (void)prctl(PR_SET_DUMPABLE, 0L, 0L, 0L, 0L);
#endif
}

void cs_name_process(const char *name) {
#if defined(__linux__)
    (void)prctl(PR_SET_NAME, name, 0L, 0L, 0L);
#else
    (void)name;
#endif
}

int cs_limit_memory(int64_t bytes) {
#if defined(__linux__)
    struct rlimit limit;
    if (getrlimit(RLIMIT_DATA, &limit) != 0) return -1;
    if (limit.rlim_cur > (rlim_t)bytes) limit.rlim_cur = (rlim_t)bytes;
    return setrlimit(RLIMIT_DATA, &limit);
#else
    (void)bytes;
    return 0;
#endif
}

int cs_limit_processor_time(int64_t seconds) {
    signal(SIGXCPU, SIG_DFL);
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGXCPU);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);

    struct rlimit limit;
    struct rusage used;
    if (getrlimit(RLIMIT_CPU, &limit) != 0 || getrusage(RUSAGE_SELF, &used) != 0) return -1;
    // The part of a second that is cut off is granted.
    rlim_t end = (rlim_t)(used.ru_utime.tv_sec + used.ru_stime.tv_sec + 2 + seconds);
    limit.rlim_cur = limit.rlim_max < end ? limit.rlim_max : end;
    return setrlimit(RLIMIT_CPU, &limit);
}

static int close_on_exec(const int ends[2]) {
    for (int end = 0; end < 2; end++) {
        if (fcntl(ends[end], F_SETFD, FD_CLOEXEC) != 0) return -1;
    }
    return 0;
}

static void close_both(const int ends[2]) {
    for (int end = 0; end < 2; end++) {
        if (ends[end] >= 0) close(ends[end]);
    }
}

// No child may be started between the creation of a descriptor and its marking, because the child would inherit it.
static pthread_mutex_t starting = PTHREAD_MUTEX_INITIALIZER;

int cs_pipe(int ends[2]) {
    pthread_mutex_lock(&starting);
    int result = pipe(ends) == 0 ? close_on_exec(ends) : -1;
    pthread_mutex_unlock(&starting);
    return result;
}

#if TARGET_OS_TV || TARGET_OS_WATCH
// Apps cannot start processes there.
static int start(char *const *argv, int input, int channel, pid_t *process) {
    (void)argv, (void)input, (void)channel, (void)process;
    return ENOTSUP;
}
#else
// Writes a path with which this process's own program can be executed. On Linux, the path leads to the same program
// even if an update has replaced the file meanwhile.
static int own_program(char *path, size_t size) {
#if defined(__APPLE__)
    uint32_t length = (uint32_t)size;
    return _NSGetExecutablePath(path, &length) == 0 ? 0 : ENAMETOOLONG;
#else
    const char *program = "/proc/self/exe";
#if defined(CIPHERSTORE_PORTABLE)
    program = "";
#endif
#if defined(__linux__)
    if (access(program, X_OK) != 0) program = (const char *)getauxval(AT_EXECFN);
#endif
    if (program == NULL || strlen(program) >= size) return ENOENT;
    strcpy(path, program);
    return 0;
#endif
}

static int start(char *const *argv, int input, int channel, pid_t *process) {
    char path[4096];
    int result = own_program(path, sizeof path);
    if (result != 0) return result;
    posix_spawn_file_actions_t actions;
    result = posix_spawn_file_actions_init(&actions);
    if (result != 0) return result;
    result = posix_spawn_file_actions_adddup2(&actions, input, 0);
    if (result == 0) result = posix_spawn_file_actions_adddup2(&actions, channel, 1);
    // Only the run acts on these signals. The thread that started the run may have blocked others as well, with which a
    // crash would not end the child.
    sigset_t blocked;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGINT);
    sigaddset(&blocked, SIGTERM);
    sigaddset(&blocked, SIGHUP);
    posix_spawnattr_t attributes;
    if (result == 0) result = posix_spawnattr_init(&attributes);
    if (result == 0) {
        posix_spawnattr_setsigmask(&attributes, &blocked);
        posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
        result = posix_spawn(process, path, &actions, &attributes, argv, environ);
        posix_spawnattr_destroy(&attributes);
    }
    posix_spawn_file_actions_destroy(&actions);
    return result;
}
#endif

int cs_child_start(char *const *argv, struct cs_child *child) {
    int input[2] = {-1, -1}, channel[2] = {-1, -1};
    pthread_mutex_lock(&starting);
    int result = pipe(input) == 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, channel) == 0 && close_on_exec(input) == 0 &&
                         close_on_exec(channel) == 0
                     ? 0
                     : errno;
    if (result == 0) result = start(argv, input[0], channel[1], &child->process);
    pthread_mutex_unlock(&starting);
    if (result != 0) {
        close_both(input);
        close_both(channel);
        return result;
    }
    close(input[0]);
    close(channel[1]);
    child->input = input[1];
    child->channel = channel[0];
    return 0;
}

int cs_is_socket(int descriptor) {
    struct stat status;
    return fstat(descriptor, &status) == 0 && S_ISSOCK(status.st_mode);
}

// The control data of a message with one descriptor, aligned as required.
union control {
    struct cmsghdr header;
    char bytes[CMSG_SPACE(sizeof(int))];
};

ssize_t cs_send(int channel, const void *bytes, size_t count, int descriptor) {
    struct iovec part = {(void *)bytes, count};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    union control control;
    if (descriptor >= 0) {
        memset(&control, 0, sizeof control);
        message.msg_control = control.bytes;
        message.msg_controllen = sizeof control.bytes;
        struct cmsghdr *header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(header), &descriptor, sizeof(int));
    }
    ssize_t sent;
    do sent = sendmsg(channel, &message, 0);
    while (sent < 0 && errno == EINTR);
    return sent;
}

ssize_t cs_receive(int channel, void *bytes, size_t count, int *descriptor) {
    struct iovec part = {bytes, count};
    union control control;
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control.bytes};
    int flags = 0;
#if defined(MSG_CMSG_CLOEXEC)
    flags = MSG_CMSG_CLOEXEC;
#endif
    ssize_t received;
    do received = recvmsg(channel, &message, flags);
    while (received < 0 && errno == EINTR);
    *descriptor = -1;
    if (received <= 0) return received;
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    if (header != NULL && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS &&
        header->cmsg_len == CMSG_LEN(sizeof(int))) {
        memcpy(descriptor, CMSG_DATA(header), sizeof(int));
        (void)fcntl(*descriptor, F_SETFD, FD_CLOEXEC);
    }
    return received;
}
