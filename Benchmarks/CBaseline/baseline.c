#include "baseline.h"

#include <libusb.h>
#include <malloc.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <winscard.h>

static int64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

struct baseline_scard {
    SCARDCONTEXT context;
    SCARDHANDLE card;
};

struct baseline_scard *baseline_scard_open(void)
{
    struct baseline_scard *scard = calloc(1, sizeof *scard);
    char readers[1024];
    DWORD length = sizeof readers, protocol;
    if (SCardEstablishContext(SCARD_SCOPE_SYSTEM, NULL, NULL, &scard->context) != SCARD_S_SUCCESS ||
        SCardListReaders(scard->context, NULL, readers, &length) != SCARD_S_SUCCESS ||
        SCardConnect(scard->context, readers, SCARD_SHARE_SHARED, SCARD_PROTOCOL_T1, &scard->card, &protocol) !=
            SCARD_S_SUCCESS) {
        free(scard);
        return NULL;
    }
    return scard;
}

int64_t baseline_scard_transmit(struct baseline_scard *scard, const uint8_t *command, size_t count)
{
    uint8_t answer[258];
    DWORD length = sizeof answer;
    int64_t start = now();
    LONG status = SCardTransmit(scard->card, SCARD_PCI_T1, command, count, NULL, answer, &length);
    int64_t end = now();
    return status == SCARD_S_SUCCESS && length >= 2 ? end - start : -1;
}

void baseline_scard_close(struct baseline_scard *scard)
{
    SCardDisconnect(scard->card, SCARD_LEAVE_CARD);
    SCardReleaseContext(scard->context);
    free(scard);
}

struct baseline_usb {
    libusb_context *context;
    libusb_device_handle *device;
    uint8_t sequence;
};

static int exchange(struct baseline_usb *usb, uint8_t type, const uint8_t *data, size_t count)
{
    uint8_t out[271] = {type, count, count >> 8, 0, 0, 0, usb->sequence++}, in[320];
    int done;
    if (count > 261) return -1;
    memcpy(out + 10, data, count);
    if (libusb_bulk_transfer(usb->device, 0x02, out, 10 + count, &done, 5000) != 0) return -1;
    if (libusb_bulk_transfer(usb->device, 0x82, in, sizeof in, &done, 5000) != 0) return -1;
    return done >= 10 && in[0] == 0x80 && in[6] == out[6] ? done - 10 : -1;
}

struct baseline_usb *baseline_usb_open(void)
{
    struct baseline_usb *usb = calloc(1, sizeof *usb);
    if (libusb_init(&usb->context) != 0 ||
        (usb->device = libusb_open_device_with_vid_pid(usb->context, 0x072f, 0x2200)) == NULL ||
        libusb_claim_interface(usb->device, 0) != 0 || exchange(usb, 0x62, NULL, 0) < 0) {
        free(usb);
        return NULL;
    }
    return usb;
}

int64_t baseline_usb_transmit(struct baseline_usb *usb, const uint8_t *command, size_t count)
{
    int64_t start = now();
    int length = exchange(usb, 0x6f, command, count);
    int64_t end = now();
    return length >= 2 ? end - start : -1;
}

void baseline_usb_close(struct baseline_usb *usb)
{
    libusb_release_interface(usb->device, 0);
    libusb_close(usb->device);
    libusb_exit(usb->context);
    free(usb);
}

int baseline_tlv_walk(const uint8_t *bytes, size_t count)
{
    int objects = 0;
    size_t i = 0;
    while (i < count) {
        if (bytes[i] == 0x00 || bytes[i] == 0xff) {
            i++;
            continue;
        }
        int constructed = bytes[i] & 0x20;
        if ((bytes[i++] & 0x1f) == 0x1f)
            while (i < count && bytes[i++] & 0x80)
                ;
        if (i >= count) return -1;
        size_t length = bytes[i++];
        if (length >= 0x80) {
            size_t more = length & 0x7f;
            length = 0;
            if (more == 0 || more > 4) return -1;
            while (more--) {
                if (i >= count) return -1;
                length = length << 8 | bytes[i++];
            }
        }
        if (length > count - i) return -1;
        objects++;
        if (!constructed) i += length;
    }
    return objects;
}

size_t baseline_live_bytes(void)
{
    struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd - (size_t)sqlite3_memory_used();
}

struct baseline_sqlite {
    sqlite3 *database;
    sqlite3_stmt *insert;
};

struct baseline_sqlite *baseline_sqlite_open(const char *path)
{
    struct baseline_sqlite *sqlite = calloc(1, sizeof *sqlite);
    static const char setup[] =
        "PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;"
        "CREATE TABLE payment (number INTEGER PRIMARY KEY, content BLOB NOT NULL)";
    if (sqlite3_open(path, &sqlite->database) != SQLITE_OK ||
        sqlite3_exec(sqlite->database, setup, NULL, NULL, NULL) != SQLITE_OK ||
        sqlite3_prepare_v2(sqlite->database, "INSERT INTO payment (content) VALUES (?)", -1, &sqlite->insert, NULL) !=
            SQLITE_OK) {
        sqlite3_close(sqlite->database);
        free(sqlite);
        return NULL;
    }
    return sqlite;
}

int64_t baseline_sqlite_insert(struct baseline_sqlite *sqlite, const uint8_t *bytes, size_t count)
{
    int64_t start = now();
    sqlite3_bind_blob(sqlite->insert, 1, bytes, (int)count, SQLITE_STATIC);
    int result = sqlite3_step(sqlite->insert);
    sqlite3_reset(sqlite->insert);
    return result == SQLITE_DONE ? now() - start : -1;
}

void baseline_sqlite_close(struct baseline_sqlite *sqlite)
{
    sqlite3_finalize(sqlite->insert);
    sqlite3_close(sqlite->database);
    free(sqlite);
}
