// A C program that sends APDUs as ours do: the thread that wants an answer blocks for nothing else.  SCardTransmit runs on a thread
// of its own; libusb's transfers are submitted, and its events are handled on a thread of their own.

#include "baseline.h"

#include <libusb.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
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

// MARK: PC/SC

struct baseline_scard {
    SCARDCONTEXT context;
    SCARDHANDLE card;
    pthread_t thread;
    sem_t asked, done;
    const uint8_t *command;
    size_t count;
    int is_answered, is_over;
};

static int transmit(struct baseline_scard *scard, const uint8_t *command, size_t count)
{
    uint8_t answer[258];
    DWORD length = sizeof answer;
    LONG status = SCardTransmit(scard->card, SCARD_PCI_T1, command, count, NULL, answer, &length);
    return status == SCARD_S_SUCCESS && length >= 2;
}

static void *serve(void *context)
{
    struct baseline_scard *scard = context;
    for (;;) {
        sem_wait(&scard->asked);
        if (scard->is_over) return NULL;
        scard->is_answered = transmit(scard, scard->command, scard->count);
        sem_post(&scard->done);
    }
}

struct baseline_scard *baseline_scard_open(void)
{
    struct baseline_scard *scard = calloc(1, sizeof *scard);
    char readers[1024];
    DWORD length = sizeof readers, protocol;
    if (SCardEstablishContext(SCARD_SCOPE_SYSTEM, NULL, NULL, &scard->context) != SCARD_S_SUCCESS ||
        SCardListReaders(scard->context, NULL, readers, &length) != SCARD_S_SUCCESS ||
        SCardConnect(scard->context, readers, SCARD_SHARE_SHARED, SCARD_PROTOCOL_T1, &scard->card, &protocol) !=
            SCARD_S_SUCCESS ||
        sem_init(&scard->asked, 0, 0) != 0 || sem_init(&scard->done, 0, 0) != 0 ||
        pthread_create(&scard->thread, NULL, serve, scard) != 0) {
        free(scard);
        return NULL;
    }
    return scard;
}

int64_t baseline_scard_transmit(struct baseline_scard *scard, const uint8_t *command, size_t count)
{
    int64_t start = now();
    scard->command = command;
    scard->count = count;
    sem_post(&scard->asked);
    sem_wait(&scard->done);
    int64_t end = now();
    return scard->is_answered ? end - start : -1;
}

int64_t baseline_scard_transmit_blocking(struct baseline_scard *scard, const uint8_t *command, size_t count)
{
    int64_t start = now();
    int is_answered = transmit(scard, command, count);
    int64_t end = now();
    return is_answered ? end - start : -1;
}

void baseline_scard_close(struct baseline_scard *scard)
{
    scard->is_over = 1;
    sem_post(&scard->asked);
    pthread_join(scard->thread, NULL);
    SCardDisconnect(scard->card, SCARD_LEAVE_CARD);
    SCardReleaseContext(scard->context);
    free(scard);
}

// MARK: USB

struct baseline_usb {
    libusb_context *context;
    libusb_device_handle *device;
    struct libusb_transfer *out, *in;
    pthread_t thread;
    sem_t done;
    atomic_int is_over;
    uint8_t sequence, message[271], answer[320];
};

static void *handle_events(void *context)
{
    struct baseline_usb *usb = context;
    while (!atomic_load(&usb->is_over)) libusb_handle_events(usb->context);
    return NULL;
}

static void LIBUSB_CALL ended(struct libusb_transfer *transfer) { sem_post(transfer->user_data); }

static size_t fill(struct baseline_usb *usb, uint8_t type, const uint8_t *data, size_t count)
{
    uint8_t header[10] = {type, count, count >> 8, 0, 0, 0, usb->sequence++};
    memcpy(usb->message, header, sizeof header);
    if (count > 0) memcpy(usb->message + 10, data, count);
    return 10 + count;
}

static int is_answer(struct baseline_usb *usb, int count)
{
    return count >= 10 && usb->answer[0] == 0x80 && usb->answer[6] == usb->message[6] ? count - 10 : -1;
}

static int exchange(struct baseline_usb *usb, uint8_t type, const uint8_t *data, size_t count)
{
    if (count > 261) return -1;
    int length = (int)fill(usb, type, data, count);
    libusb_fill_bulk_transfer(usb->in, usb->device, 0x82, usb->answer, sizeof usb->answer, ended, &usb->done, 5000);
    libusb_fill_bulk_transfer(usb->out, usb->device, 0x02, usb->message, length, ended, &usb->done, 5000);
    if (libusb_submit_transfer(usb->out) != 0) return -1;
    int is_waiting = libusb_submit_transfer(usb->in) == 0;
    sem_wait(&usb->done);
    if (is_waiting) sem_wait(&usb->done);
    return is_waiting && usb->out->status == LIBUSB_TRANSFER_COMPLETED && usb->in->status == LIBUSB_TRANSFER_COMPLETED
        ? is_answer(usb, usb->in->actual_length)
        : -1;
}

static int exchange_blocking(struct baseline_usb *usb, uint8_t type, const uint8_t *data, size_t count)
{
    int done;
    if (count > 261) return -1;
    int length = (int)fill(usb, type, data, count);
    if (libusb_bulk_transfer(usb->device, 0x02, usb->message, length, &done, 5000) != 0) return -1;
    if (libusb_bulk_transfer(usb->device, 0x82, usb->answer, sizeof usb->answer, &done, 5000) != 0) return -1;
    return is_answer(usb, done);
}

struct baseline_usb *baseline_usb_open(int has_thread)
{
    struct baseline_usb *usb = calloc(1, sizeof *usb);
    if (libusb_init(&usb->context) != 0 ||
        (usb->device = libusb_open_device_with_vid_pid(usb->context, 0x072f, 0x2200)) == NULL ||
        libusb_claim_interface(usb->device, 0) != 0 || exchange_blocking(usb, 0x62, NULL, 0) < 0) {
        free(usb);
        return NULL;
    }
    if (!has_thread) return usb;
    usb->out = libusb_alloc_transfer(0);
    usb->in = libusb_alloc_transfer(0);
    sem_init(&usb->done, 0, 0);
    pthread_create(&usb->thread, NULL, handle_events, usb);
    return usb;
}

int64_t baseline_usb_transmit(struct baseline_usb *usb, const uint8_t *command, size_t count)
{
    int64_t start = now();
    int length = usb->out ? exchange(usb, 0x6f, command, count) : exchange_blocking(usb, 0x6f, command, count);
    int64_t end = now();
    return length >= 2 ? end - start : -1;
}

void baseline_usb_close(struct baseline_usb *usb)
{
    if (usb->out) {
        atomic_store(&usb->is_over, 1);
        libusb_interrupt_event_handler(usb->context);
        pthread_join(usb->thread, NULL);
        libusb_free_transfer(usb->out);
        libusb_free_transfer(usb->in);
    }
    libusb_release_interface(usb->device, 0);
    libusb_close(usb->device);
    libusb_exit(usb->context);
    free(usb);
}
