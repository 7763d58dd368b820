#include <sys/syscall.h>

/// The state in which each process of the tests begins, set before main so that no test that comes early decides for others.
///
/// - TMPDIR: a folder of the test run, removed when its process exits, with all that killed programs left in it.  Programs
///   that the tests start inherit it.
/// - PCSCLITE_CSOCK_NAME: where this process's libpcsclite looks for pcscd's socket, read at its first call and kept.
///   Nothing is there until somebody makes it.
///
/// SIGINT is not ignored, as it is in what a shell starts in the background: the tests interrupt programs.

/// Returns the value of PCSCLITE_CSOCK_NAME.
const char *test_pcscd_socket(void);

/// The system calls of a thread that sleeps for a time and waits for nobody, as `/proc/self/task/*/syscall` has them.
enum { test_nanosleep = SYS_nanosleep, test_clock_nanosleep = SYS_clock_nanosleep };
