// The declarations of Darwin's string.h that CipherPrimitives uses; see CommonCrypto.h beside it.
#ifndef DARWIN_STUB_H
#define DARWIN_STUB_H

#include <stddef.h>

int memset_s(void *bytes, size_t size, int value, size_t count);
int timingsafe_bcmp(const void *left, const void *right, size_t count);

#endif
