// The messages in which libpcsc-preload tells apdu-trace about a program's PC/SC calls: one per message of a
// SOCK_SEQPACKET socket, in native byte order.  Both programs are built together, so the format has no versions.
#pragma once
#include <stdint.h>

/// The environment variable that names the socket.
#define PCSC_EVENTS_SOCKET "APDU_TRACE_SOCKET"

/// The greatest length of a message after its header: a reader's name and MAX_BUFFER_SIZE_EXTENDED.
#define PCSC_EVENTS_MAXIMUM (256 + 65548)

/// The kinds of message.  A slow call is reported before and after; the others after.
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
    /// SCardGetStatusChange reports a reader.  `argument` is dwEventState, the text the reader's name, the data the
    /// ATR.
    PCSC_READER_STATE,
    /// The process ends before everything could be reported.  It has no time.
    PCSC_ENDED,
};

struct pcsc_event {
    /// The CLOCK_MONOTONIC time in nanoseconds.
    uint64_t time;
    /// The calling thread.
    uint64_t thread;
    /// The SCARDHANDLE.
    uint64_t card;
    uint32_t kind;
    /// The number of the message in its process, including messages that could not be sent.
    uint32_t sequence;
    /// The status that the call returned.
    uint32_t status;
    uint32_t argument;
    /// The active protocol, if the call returns it.
    uint32_t protocol;
    /// The text, without a null byte, and then the data follow this header.
    uint32_t text_length;
    uint32_t data_length;
    uint32_t reserved;
};
