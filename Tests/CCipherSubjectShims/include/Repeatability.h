#ifndef REPEATABILITY_H
#define REPEATABILITY_H

// Makes this process repeatable: the random bytes of libcrypto and SQLite are always the same, and SQLite's clock
// stands still. Two runs that do the same then leave the same bytes. Returns whether this succeeded; the libraries must
// not be in use yet.
int rp_install(void);

#endif
