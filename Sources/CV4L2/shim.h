// Video for Linux, version 2: the kernel's own header.
#pragma once
#include <linux/videodev2.h>
#include <sys/ioctl.h>

// Swift does not see numbers that function-like macros make.

static const unsigned long CV4L2_QUERYCAP = VIDIOC_QUERYCAP;
static const unsigned long CV4L2_ENUM_FMT = VIDIOC_ENUM_FMT;
static const unsigned long CV4L2_ENUM_FRAMESIZES = VIDIOC_ENUM_FRAMESIZES;
static const unsigned long CV4L2_S_FMT = VIDIOC_S_FMT;
static const unsigned long CV4L2_REQBUFS = VIDIOC_REQBUFS;
static const unsigned long CV4L2_QUERYBUF = VIDIOC_QUERYBUF;
static const unsigned long CV4L2_QBUF = VIDIOC_QBUF;
static const unsigned long CV4L2_DQBUF = VIDIOC_DQBUF;
static const unsigned long CV4L2_STREAMON = VIDIOC_STREAMON;
static const unsigned long CV4L2_STREAMOFF = VIDIOC_STREAMOFF;

static const __u32 CV4L2_MJPEG = V4L2_PIX_FMT_MJPEG;
static const __u32 CV4L2_JPEG = V4L2_PIX_FMT_JPEG;
static const __u32 CV4L2_YUYV = V4L2_PIX_FMT_YUYV;
