#define _GNU_SOURCE
#include "wiped_heap.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define HAS_SANITIZER
#endif
#endif

#include <stdlib.h>

#if defined(__GLIBC__) && !defined(HAS_SANITIZER)
#include <errno.h>
#include <malloc.h>
#include <string.h>

void __libc_free(void *);

// Weak, so that a program may have an allocator of its own.
__attribute__((weak)) void free(void *block) {
    if (block == NULL) return;
    int error = errno;
    explicit_bzero(block, malloc_usable_size(block));
    __libc_free(block);
    errno = error;
}

// That of the C library frees without calling free.
__attribute__((weak)) void *realloc(void *block, size_t size) {
    if (block == NULL) return malloc(size);
    if (size == 0) {
        free(block);
        return NULL;
    }
    size_t old = malloc_usable_size(block);
    // What is large is grown in place, or not often; what shrinks stays.
    if (size <= old && size >= old / 2) return block;
    void *new = malloc(size);
    if (new == NULL) return NULL;
    memcpy(new, block, old < size ? old : size);
    free(block);
    return new;
}
#endif
