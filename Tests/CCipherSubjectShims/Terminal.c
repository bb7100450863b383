#define _GNU_SOURCE
#define _DARWIN_C_SOURCE
#include "Terminal.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

int tm_open(int *inner) {
    int outer = posix_openpt(O_RDWR | O_NOCTTY);
    if (outer < 0) return -1;
    const char *name = grantpt(outer) == 0 && unlockpt(outer) == 0 ? ptsname(outer) : NULL;
    *inner = name == NULL ? -1 : open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (*inner >= 0 && fcntl(outer, F_SETFD, FD_CLOEXEC) == 0) return outer;
    close(outer);
    return -1;
}
