// An executable's choice, never a library's.  An executable target that depends on this, which it need not import, has its
// heap wiped as it is freed: what a card has told is not left behind in arrays and strings, nor in a core dump.
//
// For the GNU C library, whose allocator a program may replace in part
// (https://sourceware.org/glibc/manual/latest/html_node/Replacing-malloc.html); elsewhere, and under the sanitizers, which have
// an allocator of their own, it does nothing.
