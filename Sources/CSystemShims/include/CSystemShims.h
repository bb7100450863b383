#ifndef CSYSTEM_SHIMS_H
#define CSYSTEM_SHIMS_H

#include <getopt.h>
#include <sys/types.h>
#include <sys/xattr.h>

// Renames a file and fails with EEXIST where the new name is taken. Returns 0, or -1 with errno set.
int cs_rename_noreplace(const char *from, const char *to);

// The three calls for extended attributes, with one signature on Linux and Apple platforms. Symbolic links are followed.
ssize_t cs_listxattr(const char *path, char *names, size_t size);
ssize_t cs_getxattr(const char *path, const char *name, void *value, size_t size);
int cs_setxattr(const char *path, const char *name, const void *value, size_t size);

#endif
