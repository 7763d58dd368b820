// The TurboJPEG API of libjpeg-turbo, which unlike libjpeg's own returns from an error.
#pragma once
#include <turbojpeg.h>
