// libcups, as an IPP client.
#pragma once
#include <cups/cups.h>
