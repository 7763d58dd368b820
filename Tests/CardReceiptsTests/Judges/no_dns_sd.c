// What ippeveprinter needs of Avahi, without Avahi: preloaded, it starts where no avahi-daemon runs, and is announced nowhere.
#include <stddef.h>

static int something;

void *avahi_threaded_poll_new(void) { return &something; }
void *avahi_threaded_poll_get(void *poll) { return poll; }
int avahi_threaded_poll_start(void *poll) { (void)poll; return 0; }
void avahi_threaded_poll_lock(void *poll) { (void)poll; }
void avahi_threaded_poll_unlock(void *poll) { (void)poll; }

void *avahi_client_new(const void *poll, int flags, void *callback, void *data, int *error) {
    (void)poll; (void)flags; (void)callback; (void)data;
    if (error) *error = 0;
    return &something;
}
int avahi_client_errno(void *client) { (void)client; return 0; }
const char *avahi_client_get_host_name_fqdn(void *client) { (void)client; return "localhost"; }

void *avahi_entry_group_new(void *client, void *callback, void *data) {
    (void)client; (void)callback; (void)data;
    return &something;
}
int avahi_entry_group_add_service_strlst(void *group, ...) { (void)group; return 0; }
int avahi_entry_group_add_service_subtype(void *group, ...) { (void)group; return 0; }
int avahi_entry_group_commit(void *group) { (void)group; return 0; }
int avahi_entry_group_free(void *group) { (void)group; return 0; }

void *avahi_string_list_add_printf(void *list, const char *format, ...) { (void)list; (void)format; return &something; }
void avahi_string_list_free(void *list) { (void)list; }
