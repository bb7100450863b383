#if !defined(_GNU_SOURCE) && !defined(__APPLE__)
#define _GNU_SOURCE
#endif
#include "Spawning.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

int sp_spawn(pid_t *process, const char *path, char *const arguments[], char *const environment[], const char *folder,
             const int streams[3]) {
    posix_spawn_file_actions_t actions;
    int result = posix_spawn_file_actions_init(&actions);
    if (result != 0) return result;
    result = posix_spawn_file_actions_addchdir_np(&actions, folder);
    for (int stream = 0; stream < 3 && result == 0; stream++)
        result = streams[stream] < 0
                     ? posix_spawn_file_actions_addopen(&actions, stream, "/dev/null", O_RDWR, 0)
                     : posix_spawn_file_actions_adddup2(&actions, streams[stream], stream);
    short flags = POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF;
#ifdef POSIX_SPAWN_CLOEXEC_DEFAULT
    flags |= POSIX_SPAWN_CLOEXEC_DEFAULT;
#else
    if (result == 0) result = posix_spawn_file_actions_addclosefrom_np(&actions, 3);
#endif
    posix_spawnattr_t attributes;
    if (result == 0) result = posix_spawnattr_init(&attributes);
    if (result == 0) {
        // A job in the background of a shell ignores some signals.
        sigset_t all;
        sigfillset(&all);
        posix_spawnattr_setsigdefault(&attributes, &all);
        posix_spawnattr_setflags(&attributes, flags);
        result = posix_spawn(process, path, &actions, &attributes, arguments, environment);
        posix_spawnattr_destroy(&attributes);
    }
    posix_spawn_file_actions_destroy(&actions);
    return result;
}

int sp_wait(pid_t process, int *status, int *was_killed) {
    int state = 0;
    while (waitpid(process, &state, 0) != process)
        if (errno != EINTR) return -1;
    *was_killed = WIFSIGNALED(state);
    *status = WIFSIGNALED(state) ? WTERMSIG(state) : WEXITSTATUS(state);
    return 0;
}

int sp_is_running(pid_t process) {
    siginfo_t state = {0};
    return waitid(P_PID, (id_t)process, &state, WEXITED | WNOHANG | WNOWAIT) == 0 && state.si_pid == 0;
}
