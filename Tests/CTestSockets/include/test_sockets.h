/// The path at which the libpcsclite of this process looks for pcscd's socket: PCSCLITE_CSOCK_NAME.
///
/// libpcsclite reads the variable at its first call and keeps what it read.  It is therefore set before main, so that no
/// test that comes to libpcsclite early decides for all others.  Nothing is made on the disk.
const char *test_pcscd_socket(void);
