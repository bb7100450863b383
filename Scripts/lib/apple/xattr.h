// Darwin's sys/xattr.h, which the package ziglang does not carry.
// Source: the published source of Apple's kernel, bsd/sys/xattr.h. These functions have no availability there.
#include <sys/types.h>

ssize_t getxattr(const char *path, const char *name, void *value, size_t size, u_int32_t position, int options);
int fsetxattr(int fd, const char *name, const void *value, size_t size, u_int32_t position, int options);
int fremovexattr(int fd, const char *name, int options);
ssize_t listxattr(const char *path, char *namebuff, size_t size, int options);
