// winscard.h wants it without its folder.
#include <PCSC/wintypes.h>
