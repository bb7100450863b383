#define _GNU_SOURCE
#include "CCipherSystem.h"

#include <signal.h>
#include <stddef.h>
#include <sys/resource.h>

#ifdef __linux__
#include <sys/prctl.h>
#endif

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
