// Counts calls of the C library's allocator by replacing its functions.

#define _GNU_SOURCE
#include "baseline.h"
#include <errno.h>
#include <stdatomic.h>

void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);

static atomic_size_t count, bytes;

static void one(size_t size) {
    atomic_fetch_add_explicit(&count, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&bytes, size, memory_order_relaxed);
}

size_t baseline_allocations(void) { return atomic_load_explicit(&count, memory_order_relaxed); }
size_t baseline_allocated_bytes(void) { return atomic_load_explicit(&bytes, memory_order_relaxed); }

// A sanitizer replaces them itself; there nothing is counted.
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

#endif
