#pragma once

#include <linux/usbdevice_fs.h>
#include <string.h>
#include <sys/ioctl.h>
#include <umockdev.h>

// What Swift cannot see: ioctl numbers made by function-like macros, and GLib's casts and signal macros.

enum {
    CUMOCKDEV_CONTROL = USBDEVFS_CONTROL,
    CUMOCKDEV_RESETEP = USBDEVFS_RESETEP,
    CUMOCKDEV_SETINTERFACE = USBDEVFS_SETINTERFACE,
    CUMOCKDEV_SETCONFIGURATION = USBDEVFS_SETCONFIGURATION,
    CUMOCKDEV_GETDRIVER = USBDEVFS_GETDRIVER,
    CUMOCKDEV_SUBMITURB = USBDEVFS_SUBMITURB,
    CUMOCKDEV_DISCARDURB = USBDEVFS_DISCARDURB,
    CUMOCKDEV_REAPURB = USBDEVFS_REAPURB,
    CUMOCKDEV_REAPURBNDELAY = USBDEVFS_REAPURBNDELAY,
    CUMOCKDEV_CLAIMINTERFACE = USBDEVFS_CLAIMINTERFACE,
    CUMOCKDEV_RELEASEINTERFACE = USBDEVFS_RELEASEINTERFACE,
    CUMOCKDEV_CONNECTINFO = USBDEVFS_CONNECTINFO,
    CUMOCKDEV_IOCTL = USBDEVFS_IOCTL,
    CUMOCKDEV_RESET = USBDEVFS_RESET,
    CUMOCKDEV_CLEAR_HALT = USBDEVFS_CLEAR_HALT,
    CUMOCKDEV_GET_CAPABILITIES = USBDEVFS_GET_CAPABILITIES,
    CUMOCKDEV_DISCONNECT_CLAIM = USBDEVFS_DISCONNECT_CLAIM,
    CUMOCKDEV_GET_SPEED = USBDEVFS_GET_SPEED,
};

// The size of the memory that an ioctl's argument points to (asm-generic/ioctl.h).
static inline gsize cumockdev_ioctl_size(gulong request) { return _IOC_SIZE(request); }

typedef gboolean (*cumockdev_ioctl_function)(UMockdevIoctlBase *handler, UMockdevIoctlClient *client, gpointer context);
typedef void (*cumockdev_connected_function)(UMockdevIoctlBase *handler, UMockdevIoctlClient *client, gpointer context);
typedef void (*cumockdev_release_function)(gpointer context, GClosure *closure);
typedef void (*cumockdev_notify_function)(UMockdevIoctlClient *client, GParamSpec *property, gpointer context);

// When the handler is gone for good, `release` is called with the context.
static inline void cumockdev_on_ioctl(
    UMockdevIoctlBase *handler, cumockdev_ioctl_function function, gpointer context, cumockdev_release_function release)
{
    g_signal_connect_data(
        handler, "handle-ioctl", G_CALLBACK(function), context, (GClosureNotify)(void *)release, (GConnectFlags)0);
}

static inline void cumockdev_on_connected(
    UMockdevIoctlBase *handler, cumockdev_connected_function function, gpointer context)
{
    g_signal_connect(handler, "client-connected", G_CALLBACK(function), context);
}

// The property follows the stream under the client: it changes once, when the file is closed.
static inline void cumockdev_on_closed(
    UMockdevIoctlClient *client, cumockdev_notify_function function, gpointer context)
{
    g_signal_connect(client, "notify::connected", G_CALLBACK(function), context);
}

// umockdev calls it critical when a device goes that a program has open.  To an unplugged reader just that happens.
static inline void cumockdev_log(const gchar *domain, GLogLevelFlags level, const gchar *message, gpointer context)
{
    if (message == NULL || strstr(message, "Destroying IoctlClient with open stream") == NULL)
        g_log_default_handler(domain, level, message, context);
}

static inline void cumockdev_expect_open_clients(void) { g_log_set_default_handler(cumockdev_log, NULL); }
