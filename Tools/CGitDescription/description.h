/// Returns what `git describe` says of the commit that was built; empty outside of a clone.
///
/// GitDescription contains it.  Who imported that module would be compiled anew after each commit; so it is only linked.
const unsigned char *_Nonnull gitDescription(void);
