#ifndef REPEATABILITY_H
#define REPEATABILITY_H

// Takes chance and time out of this process: libcrypto's and SQLite's random bytes are always the same, and SQLite's
// clock stands still. What two runs leave is then equal to the byte where they did the same. Returns whether it could;
// the libraries must not be in use yet.
int rp_install(void);

#endif
