#ifndef TERMINAL_H
#define TERMINAL_H

// Opens a pseudo-terminal. Returns the end that a terminal window would have, and stores the end for a program in
// `inner`; returns -1 if the system has none.
int tm_open(int *inner);

#endif
