// winscard.h includes it without its folder.
#include <PCSC/wintypes.h>
