// Input devices: the kernel's own header.
#pragma once
#include <linux/input.h>
#include <sys/ioctl.h>

// Swift does not see numbers that function-like macros make.

// The switches of a device: SW_MAX is 16, so that three bytes hold their bits.
static const unsigned long CINPUT_SWITCHES = EVIOCGBIT(EV_SW, SW_MAX / 8 + 1);
// Their present states.
static const unsigned long CINPUT_SWITCH_STATES = EVIOCGSW(SW_MAX / 8 + 1);
static const int CINPUT_SWITCH_BYTES = SW_MAX / 8 + 1;
