// Counts calls of the C library by replacing its functions: those of the allocator, and those that flush a file to the disk.

#define _GNU_SOURCE
#include "baseline.h"
#include <errno.h>
#include <openssl/crypto.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);
void __libc_free(void *);

static atomic_size_t count, bytes, flushes;

static void one(size_t size) {
    atomic_fetch_add_explicit(&count, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&bytes, size, memory_order_relaxed);
}

size_t baseline_allocations(void) { return atomic_load_explicit(&count, memory_order_relaxed); }
size_t baseline_allocated_bytes(void) { return atomic_load_explicit(&bytes, memory_order_relaxed); }
size_t baseline_flushes(void) { return atomic_load_explicit(&flushes, memory_order_relaxed); }

int fdatasync(int file) {
    atomic_fetch_add_explicit(&flushes, 1, memory_order_relaxed);
    return (int)syscall(SYS_fdatasync, file);
}

int fsync(int file) {
    atomic_fetch_add_explicit(&flushes, 1, memory_order_relaxed);
    return (int)syscall(SYS_fsync, file);
}

// A sanitizer replaces the allocator itself; there nothing is counted.
#if !__has_feature(address_sanitizer) && !__has_feature(thread_sanitizer)

void *malloc(size_t size) {
    one(size);
    return __libc_malloc(size);
}

void *calloc(size_t number, size_t size) {
    one(number * size);
    return __libc_calloc(number, size);
}

void *realloc(void *old, size_t size) {
    one(size);
    return __libc_realloc(old, size);
}

void *aligned_alloc(size_t alignment, size_t size) {
    one(size);
    return __libc_memalign(alignment, size);
}

int posix_memalign(void **result, size_t alignment, size_t size) {
    one(size);
    *result = __libc_memalign(alignment, size);
    return *result ? 0 : ENOMEM;
}

// libcrypto's own calls, which its version and the processor decide on.
static atomic_size_t ofLibcrypto;

static void *crypto_malloc(size_t size, const char *file, int line) {
    atomic_fetch_add_explicit(&ofLibcrypto, 1, memory_order_relaxed);
    return __libc_malloc(size);
}

static void *crypto_realloc(void *old, size_t size, const char *file, int line) {
    atomic_fetch_add_explicit(&ofLibcrypto, 1, memory_order_relaxed);
    return __libc_realloc(old, size);
}

static void crypto_free(void *block, const char *file, int line) { __libc_free(block); }

int baseline_set_libcrypto_apart(void) { return CRYPTO_set_mem_functions(crypto_malloc, crypto_realloc, crypto_free); }
size_t baseline_libcrypto_allocations(void) { return atomic_load_explicit(&ofLibcrypto, memory_order_relaxed); }

#else

int baseline_set_libcrypto_apart(void) { return 1; }
size_t baseline_libcrypto_allocations(void) { return 0; }

#endif
