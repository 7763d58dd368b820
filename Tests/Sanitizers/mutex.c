// What the thread sanitizer is not told of Swift's Mutex (swift, stdlib/public/Synchronization/Mutex/LinuxImpl.swift).
//
// A Mutex that is free is taken and given back by atomics in our own code, which the sanitizer sees.  One that somebody
// waits for passes from hand to hand inside the library, which it does not, so that what the mutex keeps in order looks like
// a race.  These two stand before the library's and tell it.  The handle's address is that of the atomics, too.

#include <dlfcn.h>
#include <stdint.h>

#define LOCK "$s15Synchronization12_MutexHandleV9_lockSlowyys6UInt32VF"
#define UNLOCK "$s15Synchronization12_MutexHandleV11_unlockSlowyyF"
#define SWIFT __attribute__((swiftcall))
#define SELF __attribute__((swift_context))

// Not there in what is built for the build itself.
__attribute__((weak)) void __tsan_acquire(void *);
__attribute__((weak)) void __tsan_release(void *);

static SWIFT void (*library_lock)(uint32_t, SELF void *);
static SWIFT void (*library_unlock)(SELF void *);

__attribute__((constructor)) static void find(void) {
    library_lock = dlsym(RTLD_NEXT, LOCK);
    library_unlock = dlsym(RTLD_NEXT, UNLOCK);
}

SWIFT void lock(uint32_t thread, SELF void *handle) __asm__(LOCK);
SWIFT void unlock(SELF void *handle) __asm__(UNLOCK);

SWIFT void lock(uint32_t thread, SELF void *handle) {
    library_lock(thread, handle);
    if (__tsan_acquire) __tsan_acquire(handle);
}

SWIFT void unlock(SELF void *handle) {
    if (__tsan_release) __tsan_release(handle);
    library_unlock(handle);
}
