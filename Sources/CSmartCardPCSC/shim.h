// The PC/SC API as pcsc-lite declares it, and beside it, in C, what Swift cannot import: macros with a cast, with
// arguments, or that name a variable.
#pragma once
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <winscard.h>
#include <reader.h>

/// SCARD_CTL_CODE: 0x42000000 + code here, another formula on Windows.
static inline DWORD cscard_ctl_code(DWORD code) { return SCARD_CTL_CODE(code); }
static inline DWORD cscard_get_feature_request(void) { return CM_IOCTL_GET_FEATURE_REQUEST; }

/// SCARD_ATTR_VALUE and the attributes made with it.
static inline DWORD cscard_attr_value(DWORD class_, DWORD tag) { return SCARD_ATTR_VALUE(class_, tag); }
static inline DWORD cscard_attr_vendor_name(void) { return SCARD_ATTR_VENDOR_NAME; }
static inline DWORD cscard_attr_vendor_ifd_type(void) { return SCARD_ATTR_VENDOR_IFD_TYPE; }
static inline DWORD cscard_attr_vendor_ifd_version(void) { return SCARD_ATTR_VENDOR_IFD_VERSION; }
static inline DWORD cscard_attr_vendor_ifd_serial_no(void) { return SCARD_ATTR_VENDOR_IFD_SERIAL_NO; }
static inline DWORD cscard_attr_channel_id(void) { return SCARD_ATTR_CHANNEL_ID; }
static inline DWORD cscard_attr_atr_string(void) { return SCARD_ATTR_ATR_STRING; }
static inline DWORD cscard_attr_maxinput(void) { return SCARD_ATTR_MAXINPUT; }
static inline DWORD cscard_attr_icc_presence(void) { return SCARD_ATTR_ICC_PRESENCE; }
static inline DWORD cscard_attr_icc_interface_status(void) { return SCARD_ATTR_ICC_INTERFACE_STATUS; }
static inline DWORD cscard_attr_device_friendly_name(void) { return SCARD_ATTR_DEVICE_FRIENDLY_NAME; }
static inline DWORD cscard_attr_device_system_name(void) { return SCARD_ATTR_DEVICE_SYSTEM_NAME; }

/// The protocol control information to send with a command.
static inline const SCARD_IO_REQUEST *cscard_pci_t0(void) { return SCARD_PCI_T0; }
static inline const SCARD_IO_REQUEST *cscard_pci_t1(void) { return SCARD_PCI_T1; }
static inline const SCARD_IO_REQUEST *cscard_pci_raw(void) { return SCARD_PCI_RAW; }

/// The longest answer to a command, 65,548 bytes.
static inline size_t cscard_max_buffer_size_extended(void) { return MAX_BUFFER_SIZE_EXTENDED; }

/// The environment before and while it has one variable more.
struct cscard_environment {
    char **before, **during;
};

/// Has `assignment`, `NAME=value`, be in the environment until `cscard_environment_restore`.  One call at a time.
///
/// Other threads may be reading the environment, which setenv may move away under them.  So a copy takes its place, and
/// neither the one nor the other is ever freed.
static inline struct cscard_environment cscard_environment_add(const char *assignment) {
    static char **copy;
    static size_t capacity;
    struct cscard_environment result = {__atomic_load_n(&__environ, __ATOMIC_ACQUIRE), NULL};
    size_t count = 0;
    while (result.before && result.before[count]) count++;
    if (capacity < count + 2) {
        char **larger = (char **)malloc((count + 2) * sizeof *larger);
        if (!larger) return result;
        copy = larger;
        capacity = count + 2;
    }
    if (count) memcpy(copy, result.before, count * sizeof *copy);
    copy[count] = (char *)assignment;
    copy[count + 1] = NULL;
    result.during = copy;
    __atomic_store_n(&__environ, copy, __ATOMIC_RELEASE);
    return result;
}

/// Takes the variable `name` away again, by way of setenv's family only where somebody else has used that meanwhile.
static inline void cscard_environment_restore(struct cscard_environment environment, const char *name) {
    if (__atomic_load_n(&__environ, __ATOMIC_ACQUIRE) == environment.during)
        __atomic_store_n(&__environ, environment.before, __ATOMIC_RELEASE);
    else
        unsetenv(name);
}
