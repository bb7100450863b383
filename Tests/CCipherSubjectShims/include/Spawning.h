#ifndef SPAWNING_H
#define SPAWNING_H

#include <sys/types.h>

// Starts a program in a folder, with these three standard streams and no other open file, in a process group of its own,
// with the system's reaction to every signal.
// A stream of -1 is the null device.
// Returns 0 or an error number.
int sp_spawn(pid_t *process, const char *path, char *const arguments[], char *const environment[], const char *folder,
             const int streams[3]);

// Waits until a child has ended, and stores its exit status, or the number of the signal that ended it. Returns 0, or -1
// if it is not a child.
int sp_wait(pid_t process, int *status, int *was_killed);

// Returns whether a child has not ended yet.
int sp_is_running(pid_t process);

#endif
