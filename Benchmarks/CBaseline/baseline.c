#include "baseline.h"

#include <malloc.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int64_t read_clock(clockid_t clock)
{
    struct timespec time;
    clock_gettime(clock, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

static int64_t now(void) { return read_clock(CLOCK_MONOTONIC); }

void baseline_print_lines(void) { setvbuf(stdout, NULL, _IOLBF, 0); }

int64_t baseline_processor_time(void) { return read_clock(CLOCK_PROCESS_CPUTIME_ID); }

int64_t baseline_thread_time(void) { return read_clock(CLOCK_THREAD_CPUTIME_ID); }

// A C program that does what TLVList does: it walks to the leaves without recursion, checks every length against the object around
// it, decodes each tag and tells of each object; the list is an array of them, made in a second pass.

enum { deepest = 16 };

typedef void found(void *context, uint32_t tag, size_t start, size_t value, size_t end, int depth);

// Returns the number of objects, or -1.
__attribute__((noinline)) static int walk(const uint8_t *bytes, size_t count, found *found, void *context)
{
    size_t ends[deepest], i = 0, end = count;
    int objects = 0, depth = 0;
    for (;;) {
        while (i == end) {
            if (depth == 0) return objects;
            end = ends[--depth];
        }
        if (bytes[i] == 0x00 || bytes[i] == 0xff) {
            i++;
            continue;
        }
        size_t start = i;
        uint8_t first = bytes[i++];
        uint32_t tag = first;
        if ((first & 0x1f) == 0x1f) {
            do {
                if (i >= end || i - start >= 4) return -1;
                tag = tag << 8 | bytes[i];
            } while (bytes[i++] & 0x80);
        }
        if (i >= end) return -1;
        size_t length = bytes[i++];
        if (length >= 0x80) {
            size_t more = length & 0x7f;
            if (more == 0 || more > 4 || end - i < more) return -1;
            length = 0;
            while (more--) length = length << 8 | bytes[i++];
        }
        if (length > end - i) return -1;
        found(context, tag, start, i, i + length, depth);
        if (++objects > 16384) return -1;
        if (first & 0x20) {
            if (depth == deepest - 1) return -1;
            ends[depth++] = end;
            end = i + length;
        } else {
            i += length;
        }
    }
}

static void add_length(void *context, uint32_t tag, size_t start, size_t value, size_t end, int depth)
{
    *(size_t *)context += end - value;
}

size_t baseline_tlv_walk(const uint8_t *bytes, size_t count)
{
    size_t sum = 0;
    return walk(bytes, count, add_length, &sum) < 0 ? 0 : sum;
}

struct node {
    uint32_t tag;
    int32_t start, value, end, next;
};

struct list {
    struct node *nodes;
    int count, open[deepest], depth;
};

static void count_one(void *context, uint32_t tag, size_t start, size_t value, size_t end, int depth) { (*(int *)context)++; }

static void close_to(struct list *list, int depth)
{
    while (list->depth > depth) list->nodes[list->open[--list->depth]].next = list->count;
}

static void add_node(void *context, uint32_t tag, size_t start, size_t value, size_t end, int depth)
{
    struct list *list = context;
    close_to(list, depth);
    list->open[list->depth++] = list->count;
    list->nodes[list->count] = (struct node){tag, (int32_t)start, (int32_t)value, (int32_t)end, list->count + 1};
    list->count++;
}

int baseline_tlv_list(const uint8_t *bytes, size_t count)
{
    int objects = 0;
    if (walk(bytes, count, count_one, &objects) < 0) return -1;
    struct list list = {.nodes = malloc(objects * sizeof(struct node))};
    walk(bytes, count, add_node, &list);
    close_to(&list, 0);
    int last = list.count > 0 ? list.nodes[0].next : 0;
    free(list.nodes);
    return last;
}

size_t baseline_live_bytes(void)
{
    struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd - (size_t)sqlite3_memory_used();
}

struct baseline_sqlite {
    sqlite3 *database;
    sqlite3_stmt *insert;
};

struct baseline_sqlite *baseline_sqlite_open(const char *path)
{
    struct baseline_sqlite *sqlite = calloc(1, sizeof *sqlite);
    static const char setup[] =
        "PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;"
        "CREATE TABLE payment (number INTEGER PRIMARY KEY, content BLOB NOT NULL)";
    if (sqlite3_open(path, &sqlite->database) != SQLITE_OK ||
        sqlite3_exec(sqlite->database, setup, NULL, NULL, NULL) != SQLITE_OK ||
        sqlite3_prepare_v2(sqlite->database, "INSERT INTO payment (content) VALUES (?)", -1, &sqlite->insert, NULL) !=
            SQLITE_OK) {
        sqlite3_close(sqlite->database);
        free(sqlite);
        return NULL;
    }
    return sqlite;
}

int64_t baseline_sqlite_insert(struct baseline_sqlite *sqlite, const uint8_t *bytes, size_t count)
{
    int64_t start = now();
    sqlite3_bind_blob(sqlite->insert, 1, bytes, (int)count, SQLITE_STATIC);
    int result = sqlite3_step(sqlite->insert);
    sqlite3_reset(sqlite->insert);
    return result == SQLITE_DONE ? now() - start : -1;
}

void baseline_sqlite_close(struct baseline_sqlite *sqlite)
{
    sqlite3_finalize(sqlite->insert);
    sqlite3_close(sqlite->database);
    free(sqlite);
}

// A C program that records as SmartCardTrace does: a line for the command and one for the answer, with the time before them, each
// in the file before the exchange goes on.

static size_t put_hex(char *line, const uint8_t *bytes, size_t count)
{
    static const char digits[] = "0123456789ABCDEF";
    size_t length = 0;
    for (size_t i = 0; i < count; i++) {
        line[length++] = ' ';
        line[length++] = digits[bytes[i] >> 4];
        line[length++] = digits[bytes[i] & 15];
    }
    line[length++] = '\n';
    return length;
}

static int record(int file, int64_t start, char direction, const uint8_t *bytes, size_t count)
{
    char line[1024];
    if (count > 300) return -1;
    int64_t time = (now() - start) / 1000;
    int length = snprintf(line, 64, "%lld.%06lld %c apdu", (long long)time / 1000000, (long long)time % 1000000, direction);
    size_t whole = length + put_hex(line + length, bytes, count);
    return write(file, line, whole) == (ssize_t)whole ? 0 : -1;
}

int baseline_record(
    int file, int64_t start, const uint8_t *command, size_t command_count, const uint8_t *answer, size_t answer_count)
{
    return record(file, start, '>', command, command_count) || record(file, start, '<', answer, answer_count) ? -1 : 0;
}
