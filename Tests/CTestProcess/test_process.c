#define _GNU_SOURCE
#include "test_process.h"

#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

// Short, since sockets are made below it, and the name of one has 107 bytes at the most.
static char folder[] = "/tmp/st.XXXXXX";
static char socket_path[96];
static pid_t owner;

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *place) {
    (void)status, (void)kind, (void)place;
    return remove(path) && 0;
}

static void remove_folder(void) {
    if (getpid() == owner) nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}

__attribute__((constructor)) static void set_up(void) {
    struct timespec now;
    if (!getenv("SWIFT_CONTACTLESS_TMPDIR") && mkdtemp(folder)) {
        owner = getpid();
        setenv("SWIFT_CONTACTLESS_TMPDIR", folder, 1);
        setenv("TMPDIR", folder, 1);
        atexit(remove_folder);
    }
    signal(SIGINT, SIG_DFL);
    clock_gettime(CLOCK_REALTIME, &now);
    snprintf(socket_path, sizeof socket_path, "%.40s/%d.%09ld/link.comm", getenv("TMPDIR") ?: "/tmp", (int)getpid(),
             now.tv_nsec);
    // In the virtual machine, tests use its own pcscd.
    if (!getenv("IN_VIRTUAL_MACHINE")) setenv("PCSCLITE_CSOCK_NAME", socket_path, 1);
}

const char *test_pcscd_socket(void) { return socket_path; }
