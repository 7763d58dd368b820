#pragma once
#include <stddef.h>
#include <stdint.h>

// The cost of the same work in plain C.  Times are nanoseconds of CLOCK_MONOTONIC; negative for failure.

struct baseline_scard;
struct baseline_usb;

// Connects to the first reader's card, shared, with T=1.
struct baseline_scard *baseline_scard_open(void);
// Performs one SCardTransmit.
int64_t baseline_scard_transmit(struct baseline_scard *scard, const uint8_t *command, size_t count);
void baseline_scard_close(struct baseline_scard *scard);

// Opens 072f:2200, claims its interface, powers the card on.
struct baseline_usb *baseline_usb_open(void);
// Performs one PC_to_RDR_XfrBlock with libusb_bulk_transfer.
int64_t baseline_usb_transmit(struct baseline_usb *usb, const uint8_t *command, size_t count);
void baseline_usb_close(struct baseline_usb *usb);

struct baseline_sqlite;

// Opens a database with a table of blobs, with a write-ahead log that is flushed to disk at each commit.
struct baseline_sqlite *baseline_sqlite_open(const char *path);
// Performs one INSERT in its own transaction.
int64_t baseline_sqlite_insert(struct baseline_sqlite *sqlite, const uint8_t *bytes, size_t count);
void baseline_sqlite_close(struct baseline_sqlite *sqlite);

// Walks the BER-TLV in `bytes` down to its leaves; returns the number of objects, or -1.
int baseline_tlv_walk(const uint8_t *bytes, size_t count);

// Returns the number of this process's allocations: malloc, calloc, realloc and others.
size_t baseline_allocations(void);
// Returns the bytes that these asked for.  A copy of an array asks for its length once more.
size_t baseline_allocated_bytes(void);

// Returns the bytes of the heap in use but for SQLite's, whose cache grows with the database up to a limit.
size_t baseline_live_bytes(void);
