// What libpcsc-preload tells apdu-trace about a program's PC/SC calls: one message of a SOCK_SEQPACKET socket each, in the
// machine's byte order.  Both are built together; there are no versions.
#pragma once
#include <stdint.h>

/// The environment variable that names the socket.
#define PCSC_EVENTS_SOCKET "APDU_TRACE_SOCKET"

/// The most bytes that a message has behind its head: a reader's name, and MAX_BUFFER_SIZE_EXTENDED.
#define PCSC_EVENTS_MAXIMUM (256 + 65548)

/// Calls that take long are told of before and after; the others after.
enum pcsc_event_kind {
    /// SCardConnect has returned.  `argument` is the share mode; the text the reader's name, the data the ATR.
    PCSC_CONNECTED = 1,
    /// SCardReconnect has returned.  `argument` is the initialization; the data the ATR.
    PCSC_RECONNECTED,
    /// SCardDisconnect has returned.  `argument` is the disposition.
    PCSC_DISCONNECTED,
    /// SCardEndTransaction has returned.  `argument` is the disposition.
    PCSC_TRANSACTION_ENDED,
    /// SCardTransmit is about to be called with the data.
    PCSC_TRANSMIT,
    /// SCardTransmit has returned the data.
    PCSC_TRANSMITTED,
    /// SCardControl is about to be called.  `argument` is the control code.
    PCSC_CONTROL,
    PCSC_CONTROLLED,
    /// SCardGetStatusChange tells of a reader.  `argument` is dwEventState, the text the reader's name, the data the ATR.
    PCSC_READER_STATE,
    /// The process ends, and not everything could be told.  It has no time.
    PCSC_ENDED,
};

struct pcsc_event {
    /// CLOCK_MONOTONIC in nanoseconds.
    uint64_t time;
    /// Which of the process's threads calls.
    uint64_t thread;
    /// The SCARDHANDLE.
    uint64_t card;
    uint32_t kind;
    /// Counts the messages of a process, those included that could not be sent.
    uint32_t sequence;
    /// What the call has returned.
    uint32_t status;
    uint32_t argument;
    /// The active protocol where the call tells it.
    uint32_t protocol;
    /// The text, without a null byte, and then the data stand behind this head.
    uint32_t text_length;
    uint32_t data_length;
    uint32_t reserved;
};
