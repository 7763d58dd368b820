// One program for all tools: Swift's libraries are in it once.  The name by which it is called chooses the tool.
#include <stdio.h>
#include <string.h>

int apdu_trace_main(int, char **);
int kiosk_host_main(int, char **);
int psp_sandbox_main(int, char **);
int reader_probe_main(int, char **);
int receipt_main(int, char **);
int virtual_reader_main(int, char **);

static const struct {
    const char *name;
    int (*main)(int, char **);
} tools[] = {
    {"apdu-trace", apdu_trace_main},
    {"kiosk-host", kiosk_host_main},
    {"psp-sandbox", psp_sandbox_main},
    {"reader-probe", reader_probe_main},
    {"receipt", receipt_main},
    {"virtual-reader", virtual_reader_main},
};

int main(int argc, char **argv) {
    const char *path = argc > 0 ? argv[0] : "";
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    for (size_t i = 0; i < sizeof tools / sizeof *tools; i++)
        if (strcmp(name, tools[i].name) == 0) return tools[i].main(argc, argv);
    fprintf(stderr, "%s: call it by the name of a tool, as reader-probe\n", path);
    return 2;
}
