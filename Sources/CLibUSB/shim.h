// The libusb-1.0 API, and beside it, in C, what Swift cannot import: macros with a cast.
#pragma once
#include <libusb.h>

/// LIBUSB_HOTPLUG_MATCH_ANY, for vendor, product and device class.
static inline int cusb_hotplug_match_any(void) { return LIBUSB_HOTPLUG_MATCH_ANY; }
