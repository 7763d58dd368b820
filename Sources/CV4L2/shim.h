// Video for Linux, version 2: the kernel's own header.
#pragma once
#include <linux/videodev2.h>
#include <sys/ioctl.h>
