// Preloaded into a program (LD_PRELOAD), this library reports the program's PC/SC calls to apdu-trace.
//
// The program does not notice: each call goes to the libpcsclite that the program would otherwise have, and returns its
// result, including errno.  The library allocates nothing, prints nothing, takes no lock and raises no signal.  Without
// a listener, nothing is reported.  A listener that does not read delays the program by PATIENCE seconds, once,
// whatever signals arrive.  Lost messages are counted at the end.
#define _GNU_SOURCE
#include <PCSC/winscard.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "events.h"

enum { PATIENCE = 5, MAXIMUM_NAME = 256, LOW_DESCRIPTORS = 512 };

// MARK: The original functions

enum function { CONNECT, RECONNECT, DISCONNECT, END_TRANSACTION, TRANSMIT, CONTROL, GET_STATUS_CHANGE, STATUS, COUNT };

static const char *const names[COUNT] = {
    "SCardConnect", "SCardReconnect", "SCardDisconnect", "SCardEndTransaction",
    "SCardTransmit", "SCardControl", "SCardGetStatusChange", "SCardStatus",
};

/// Defines an alias of the function below, which a function of the same name in another preloaded library cannot
/// replace.
#define OWN(name) extern __typeof__(name) own_##name __attribute__((alias(#name), visibility("hidden")))
OWN(SCardConnect);
OWN(SCardReconnect);
OWN(SCardDisconnect);
OWN(SCardEndTransaction);
OWN(SCardTransmit);
OWN(SCardControl);
OWN(SCardGetStatusChange);

/// The replacements; none for SCardStatus, which is only called from here.
static void *const wrappers[STATUS] = {
    (void *)own_SCardConnect, (void *)own_SCardReconnect, (void *)own_SCardDisconnect, (void *)own_SCardEndTransaction,
    (void *)own_SCardTransmit, (void *)own_SCardControl, (void *)own_SCardGetStatusChange,
};

static _Atomic(void *) originals[COUNT];

typedef void *lookup(void *, const char *);

static lookup *system_dlsym(void) {
    static _Atomic(lookup *) known;
    // dlsym is in libc since 2.34, earlier in libdl, under the symbol version of the architecture's first glibc.
    static const char *const versions[] = {"GLIBC_2.34", "GLIBC_2.2.5", "GLIBC_2.17", "GLIBC_2.4", "GLIBC_2.0", "GLIBC_2.27"};
    lookup *found = atomic_load(&known);
    for (size_t i = 0; !found && i < sizeof versions / sizeof *versions; i++)
        found = (lookup *)dlvsym(RTLD_NEXT, "dlsym", versions[i]);
    atomic_store(&known, found);
    return found;
}

/// Returns true if the library of `function` stays loaded for the whole process, even if closed.
static int stays(void *function) {
    Dl_info library;
    return dladdr(function, &library) && library.dli_fname
        && dlopen(library.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
}

/// Takes all unknown functions from one library.
static void learn(void *library) {
    lookup *look_up = system_dlsym();
    if (!look_up) return;
    for (int i = 0; i < COUNT; i++) {
        void *unknown = NULL, *found = look_up(library, names[i]);
        if (!found || (i < STATUS && found == wrappers[i]) || atomic_load(&originals[i]) || !stays(found)) continue;
        atomic_compare_exchange_strong(&originals[i], &unknown, found);
    }
}

static void *original(enum function function) {
    if (!atomic_load(&originals[function])) learn(RTLD_NEXT);
    if (!atomic_load(&originals[function])) {
        // A plug-in's private library is not the next one for anyone else.
        void *library = dlopen("libpcsclite.so.1", RTLD_LAZY | RTLD_NOLOAD);
        if (library) learn(library);
    }
    return atomic_load(&originals[function]);
}

/// Replaces dlsym: programs that open libpcsclite themselves look up its functions with it (Java, OpenSC, Perl,
/// pyscard).
void *dlsym(void *restrict library, const char *restrict name) {
    int function = 0;
    while (function < STATUS && strcmp(name, names[function]) != 0) function++;
    lookup *look_up = system_dlsym();
    if (!look_up) return NULL;
    // RTLD_NEXT depends on the caller, which must appear to have called the system's function itself.  A caller that
    // asks for the next function replaces it, too, and may be the one called from here.
    if (function == STATUS || library == RTLD_NEXT) __attribute__((musttail)) return look_up(library, name);
    void *found = look_up(library, name);
    if (found == wrappers[function]) return original(function) ? found : NULL;
    if (!found) return NULL;
    // Learns all functions before the program looks up one that libpcsclite itself passes on to another library.
    if (!atomic_load(&originals[function])) learn(library);
    // Functions from a second library are not replaced.
    return found == atomic_load(&originals[function]) ? wrappers[function] : found;
}

// MARK: Reporting

static struct sockaddr_un address = {.sun_family = AF_UNIX};

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv(PCSC_EVENTS_SOCKET);
    if (path && strlen(path) < sizeof address.sun_path) strcpy(address.sun_path, path);
}

/// The process and its descriptor plus one; after a fork, the process differs.
static _Atomic uint64_t link_state;
/// The number of messages, and of those that could not be sent.  The upper half is the counting process, so that each
/// process counts anew, however many of its threads begin at once.
static _Atomic uint64_t sequence, lost;
static _Atomic pid_t listener;
static _Atomic int patience_is_over;

static uint32_t counted(_Atomic uint64_t *counter) {
    uint64_t now = atomic_load(counter);
    return (pid_t)(now >> 32) == getpid() ? (uint32_t)now : 0;
}

/// Increments the counter and returns its previous value.
static uint32_t count(_Atomic uint64_t *counter) {
    uint64_t process = (uint64_t)getpid() << 32, now = atomic_load(counter), next;
    do next = now >> 32 == process >> 32 ? process | (uint32_t)(now + 1) : process | 1;
    while (!atomic_compare_exchange_weak(counter, &now, next));
    return (uint32_t)next - 1;
}

static uint64_t packed(pid_t process, int descriptor) { return (uint64_t)process << 32 | (uint32_t)(descriptor + 1); }

static pid_t peer(int descriptor) {
    struct ucred credentials;
    socklen_t length = sizeof credentials;
    if (getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &credentials, &length) != 0) return -1;
    return credentials.pid;
}

/// Returns true for our own socket: programs close foreign descriptors and reuse their numbers.
static int is_ours(int descriptor) { return descriptor >= 0 && peer(descriptor) == atomic_load(&listener); }

/// Returns CLOCK_MONOTONIC in microseconds.
static int64_t microseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static int64_t end_of_patience(void) {
    return microseconds() + (atomic_load(&patience_is_over) ? 0 : (int64_t)PATIENCE * 1000000);
}

/// Connects, and waits for room in the listener's backlog.
static int connect_patiently(int descriptor) {
    int64_t end = end_of_patience();
    int result;
    do {
        int64_t left = end - microseconds();
        // Zero would mean no limit.
        if (left < 1) left = 1;
        struct timeval patience = {left / 1000000, left % 1000000};
        setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
        result = connect(descriptor, (struct sockaddr *)&address, sizeof address);
    } while (result != 0 && errno == EINTR && microseconds() < end);
    if (result != 0 && (errno == EAGAIN || errno == EINTR)) atomic_store(&patience_is_over, 1);
    return result;
}

/// Returns true if all of `message` was sent.
static int send_patiently(int descriptor, const struct msghdr *message) {
    int64_t end = end_of_patience();
    while (sendmsg(descriptor, message, MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
        if (errno == EINTR) continue;
        if (errno != EAGAIN && errno != EWOULDBLOCK) return 0;
        int64_t left = end - microseconds();
        if (left <= 0) {
            atomic_store(&patience_is_over, 1);
            return 0;
        }
        struct pollfd room = {.fd = descriptor, .events = POLLOUT};
        poll(&room, 1, (int)(left / 1000 + 1));
    }
    return 1;
}

static int connected_descriptor(void) {
    int low = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (low < 0) return -1;
    // The low descriptor numbers belong to the program.
    int high = fcntl(low, F_DUPFD_CLOEXEC, LOW_DESCRIPTORS), descriptor = high >= 0 ? high : low;
    if (high >= 0) close(low);
    if (connect_patiently(descriptor) != 0) {
        close(descriptor);
        return -1;
    }
    atomic_store(&listener, peer(descriptor));
    return descriptor;
}

/// Returns the descriptor; -1 without a listener.
static int descriptor(void) {
    pid_t process = getpid();
    uint64_t now = atomic_load(&link_state);
    int current = (int)(uint32_t)now - 1;
    if (now != 0 && (pid_t)(now >> 32) == process) return is_ours(current) ? current : -1;
    int fresh = connected_descriptor();
    if (atomic_compare_exchange_strong(&link_state, &now, packed(process, fresh))) {
        // The parent's descriptor is left alone.  The first thread closes it, once: the number may soon be reused.
        if (now != 0 && current != fresh && is_ours(current)) close(current);
        return fresh;
    }
    // Another thread was faster.
    if (fresh >= 0) close(fresh);
    return (int)(uint32_t)now - 1;
}

static void tell(struct pcsc_event event, const char *text, const void *data) {
    if (!address.sun_path[0]) return;
    int error = errno, socket = descriptor();
    struct iovec parts[] = {
        {&event, sizeof event}, {(void *)text, event.text_length}, {(void *)data, event.data_length}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 3};
    event.sequence = count(&sequence);
    if (socket < 0 || !send_patiently(socket, &message)) count(&lost);
    errno = error;
}

/// Reports messages lost at the end: the number of a later message reveals the gap.
__attribute__((destructor)) static void end(void) {
    uint32_t missing = counted(&lost);
    uint64_t now = atomic_load(&link_state);
    if (missing == 0 || (pid_t)(now >> 32) != getpid()) return;
    struct pcsc_event event = {.kind = PCSC_ENDED, .sequence = counted(&sequence)};
    int current = (int)(uint32_t)now - 1, fresh = -1;
    if (!is_ours(current)) {
        // The program closed the descriptor.  In its own connection, this message tells how many are missing before it.
        event.sequence = missing;
        current = fresh = connected_descriptor();
    }
    // The buffer has room beyond that for the messages of the program.
    int room = INT_MAX;
    setsockopt(current, SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
    struct iovec part = {&event, sizeof event};
    send_patiently(current, &(struct msghdr){.msg_iov = &part, .msg_iovlen = 1});
    if (fresh >= 0) close(fresh);
}

/// The frame of this thread's current call, or of one that it left by siglongjmp.
static _Thread_local const char *outermost __attribute__((tls_model("initial-exec")));

static struct pcsc_event event(enum pcsc_event_kind kind, SCARDHANDLE card, LONG status, DWORD argument) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (struct pcsc_event){
        .time = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec, .thread = (uint64_t)(uintptr_t)&outermost,
        .card = (uint64_t)card, .kind = kind, .status = (uint32_t)status, .argument = (uint32_t)argument};
}

static void tell_bytes(
    enum pcsc_event_kind kind, SCARDHANDLE card, LONG status, DWORD argument, const void *data, DWORD length) {
    struct pcsc_event it = event(kind, card, status, argument);
    // libpcsclite refuses longer data.
    it.data_length = data && length <= MAX_BUFFER_SIZE_EXTENDED ? (uint32_t)length : 0;
    tell(it, NULL, data);
}

static void tell_connection(struct pcsc_event it, const char *reader, DWORD protocol) {
    BYTE atr[MAX_ATR_SIZE];
    DWORD length = 0;
    if (it.status == SCARD_S_SUCCESS && protocol != SCARD_PROTOCOL_UNDEFINED) {
        int error = errno;
        LONG (*status)(SCARDHANDLE, LPSTR, LPDWORD, LPDWORD, LPDWORD, LPBYTE, LPDWORD) = original(STATUS);
        DWORD name_length = 0, state, active;
        length = sizeof atr;
        if (!status || status((SCARDHANDLE)it.card, NULL, &name_length, &state, &active, atr, &length) != SCARD_S_SUCCESS)
            length = 0;
        errno = error;
    }
    it.protocol = (uint32_t)protocol;
    it.text_length = reader ? (uint32_t)strnlen(reader, MAXIMUM_NAME) : 0;
    it.data_length = length <= sizeof atr ? (uint32_t)length : 0;
    tell(it, reader, atr);
}

// MARK: The calls

/// Declares `call`, the original; without it there is no PC/SC.
#define ORIGINAL(function, name)                                                                                       \
    __typeof__(name) *call = (__typeof__(name) *)original(function);                                                   \
    if (!call) return SCARD_E_NO_SERVICE

/// libpcsclite may call its own functions, which are not calls of the program.  Their frames are below that of the
/// current call.  A call from above comes from the program, which has left the earlier one.
#define FRAME ((const char *)__builtin_frame_address(0))
#define IS_OWN (outermost && FRAME < outermost)

LONG SCardConnect(
    SCARDCONTEXT context, LPCSTR reader, DWORD share, DWORD preferred, LPSCARDHANDLE card, LPDWORD protocol) {
    ORIGINAL(CONNECT, SCardConnect);
    if (IS_OWN) return call(context, reader, share, preferred, card, protocol);
    outermost = FRAME;
    LONG status = call(context, reader, share, preferred, card, protocol);
    tell_connection(
        event(PCSC_CONNECTED, card && status == SCARD_S_SUCCESS ? *card : 0, status, share), reader,
        protocol && status == SCARD_S_SUCCESS ? *protocol : 0);
    outermost = NULL;
    return status;
}

LONG SCardReconnect(SCARDHANDLE card, DWORD share, DWORD preferred, DWORD initialization, LPDWORD protocol) {
    ORIGINAL(RECONNECT, SCardReconnect);
    if (IS_OWN) return call(card, share, preferred, initialization, protocol);
    outermost = FRAME;
    LONG status = call(card, share, preferred, initialization, protocol);
    tell_connection(
        event(PCSC_RECONNECTED, card, status, initialization), NULL,
        protocol && status == SCARD_S_SUCCESS ? *protocol : 0);
    outermost = NULL;
    return status;
}

LONG SCardDisconnect(SCARDHANDLE card, DWORD disposition) {
    ORIGINAL(DISCONNECT, SCardDisconnect);
    if (IS_OWN) return call(card, disposition);
    outermost = FRAME;
    LONG status = call(card, disposition);
    tell_bytes(PCSC_DISCONNECTED, card, status, disposition, NULL, 0);
    outermost = NULL;
    return status;
}

LONG SCardEndTransaction(SCARDHANDLE card, DWORD disposition) {
    ORIGINAL(END_TRANSACTION, SCardEndTransaction);
    if (IS_OWN) return call(card, disposition);
    outermost = FRAME;
    LONG status = call(card, disposition);
    if (disposition != SCARD_LEAVE_CARD) tell_bytes(PCSC_TRANSACTION_ENDED, card, status, disposition, NULL, 0);
    outermost = NULL;
    return status;
}

LONG SCardTransmit(
    SCARDHANDLE card, const SCARD_IO_REQUEST *send_pci, LPCBYTE command, DWORD length, SCARD_IO_REQUEST *receive_pci,
    LPBYTE answer, LPDWORD answer_length) {
    ORIGINAL(TRANSMIT, SCardTransmit);
    if (IS_OWN) return call(card, send_pci, command, length, receive_pci, answer, answer_length);
    outermost = FRAME;
    tell_bytes(PCSC_TRANSMIT, card, 0, 0, command, length);
    LONG status = call(card, send_pci, command, length, receive_pci, answer, answer_length);
    int succeeded = status == SCARD_S_SUCCESS && answer_length;
    tell_bytes(PCSC_TRANSMITTED, card, status, 0, succeeded ? answer : NULL, succeeded ? *answer_length : 0);
    outermost = NULL;
    return status;
}

LONG SCardControl(
    SCARDHANDLE card, DWORD code, LPCVOID input, DWORD length, LPVOID output, DWORD output_length, LPDWORD returned) {
    ORIGINAL(CONTROL, SCardControl);
    if (IS_OWN) return call(card, code, input, length, output, output_length, returned);
    outermost = FRAME;
    tell_bytes(PCSC_CONTROL, card, 0, code, input, length);
    LONG status = call(card, code, input, length, output, output_length, returned);
    int succeeded = status == SCARD_S_SUCCESS && returned;
    tell_bytes(PCSC_CONTROLLED, card, status, code, succeeded ? output : NULL, succeeded ? *returned : 0);
    outermost = NULL;
    return status;
}

LONG SCardGetStatusChange(SCARDCONTEXT context, DWORD timeout, SCARD_READERSTATE *states, DWORD count) {
    ORIGINAL(GET_STATUS_CHANGE, SCardGetStatusChange);
    if (IS_OWN) return call(context, timeout, states, count);
    outermost = FRAME;
    LONG status = call(context, timeout, states, count);
    for (DWORD i = 0; status == SCARD_S_SUCCESS && states && i < count; i++) {
        const SCARD_READERSTATE *state = &states[i];
        // Names of this kind do not denote readers: \\?PnP?\Notification
        if (!(state->dwEventState & SCARD_STATE_CHANGED) || !state->szReader || state->szReader[0] == '\\') continue;
        struct pcsc_event it = event(PCSC_READER_STATE, 0, status, state->dwEventState);
        it.text_length = (uint32_t)strnlen(state->szReader, MAXIMUM_NAME);
        it.data_length = state->cbAtr <= sizeof state->rgbAtr ? (uint32_t)state->cbAtr : 0;
        tell(it, state->szReader, state->rgbAtr);
    }
    outermost = NULL;
    return status;
}
