#pragma once
#include <stddef.h>
#include <stdint.h>

// The cost of the same work in plain C.  Times are nanoseconds of CLOCK_MONOTONIC; negative for failure.

struct baseline_scard;
struct baseline_usb;

// Connects to the first reader's card, shared, with T=1.
struct baseline_scard *baseline_scard_open(void);
// Performs one SCardTransmit on a thread of its own, as a program must whose other tasks go on meanwhile.
int64_t baseline_scard_transmit(struct baseline_scard *scard, const uint8_t *command, size_t count);
// Performs one SCardTransmit on this thread.
int64_t baseline_scard_transmit_blocking(struct baseline_scard *scard, const uint8_t *command, size_t count);
void baseline_scard_close(struct baseline_scard *scard);

// Opens 072f:2200, claims its interface, powers the card on.
//
// has_thread: transfers are submitted together, and a thread handles libusb's events; otherwise libusb_bulk_transfer blocks for one
// after the other.
struct baseline_usb *baseline_usb_open(int has_thread);
// Performs one PC_to_RDR_XfrBlock.
int64_t baseline_usb_transmit(struct baseline_usb *usb, const uint8_t *command, size_t count);
void baseline_usb_close(struct baseline_usb *usb);

struct baseline_sqlite;

// Opens a database with a table of blobs, with a write-ahead log that is flushed to disk at each commit.
struct baseline_sqlite *baseline_sqlite_open(const char *path);
// Performs one INSERT in its own transaction.
int64_t baseline_sqlite_insert(struct baseline_sqlite *sqlite, const uint8_t *bytes, size_t count);
void baseline_sqlite_close(struct baseline_sqlite *sqlite);

// Walks the BER-TLV in `bytes` down to its leaves; returns the sum of all objects' lengths, 0 for a fault.
size_t baseline_tlv_walk(const uint8_t *bytes, size_t count);
// Makes a list of the objects in `bytes`; returns the number of them, or -1 for a fault.  The first one contains all others.
int baseline_tlv_list(const uint8_t *bytes, size_t count);

// Writes a line for a command and one for its answer.
int baseline_record(
    int file, int64_t start, const uint8_t *command, size_t command_count, const uint8_t *answer, size_t answer_count);

// Returns the number of this process's allocations: malloc, calloc, realloc and others.
size_t baseline_allocations(void);
// Returns the bytes that these asked for.  A copy of an array asks for its length once more.
size_t baseline_allocated_bytes(void);
// Counts libcrypto's allocations apart from now on: its version and the processor decide on them.  Returns 0 where it has
// allocated already.
int baseline_set_libcrypto_apart(void);
size_t baseline_libcrypto_allocations(void);
// Returns the number of times that a file was flushed to the disk.
size_t baseline_flushes(void);

// Returns the bytes of the heap in use but for SQLite's, whose cache grows with the database up to a limit.
size_t baseline_live_bytes(void);

// The nanoseconds that the processors have computed for this process, or for this thread.
int64_t baseline_processor_time(void);
int64_t baseline_thread_time(void);

// Standard output is written line by line, so that what was printed before a fatal error is seen.
void baseline_print_lines(void);
