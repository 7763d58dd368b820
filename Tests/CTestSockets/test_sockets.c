#include "test_sockets.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static char path[64];

__attribute__((constructor)) static void name_socket(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    snprintf(path, sizeof path, "/tmp/pcsc-test-%d-%09ld/link.comm", (int)getpid(), now.tv_nsec);
    setenv("PCSCLITE_CSOCK_NAME", path, 1);
}

const char *test_pcscd_socket(void) { return path; }
