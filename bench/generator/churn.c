/* What comes and goes: connections with a channel, queues; and connections that are only there. */
#include "load.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/select.h>

static void print_count(uint64_t count, uint64_t start_ns)
{
    double seconds = (double)(now_ns() - start_ns) / 1e9, cpu = (double)thread_cpu_ns() / 1e9;
    printf("{\"published\": %llu, \"consumed\": 0, \"nacked\": 0, \"seconds\": %.6f, \"rate\": %.1f, "
           "\"client_cpu_s\": %.4f, \"client_busiest_thread_s\": %.4f}\n",
           (unsigned long long)count, seconds, (double)count / seconds, cpu, cpu);
}

void churn_connections(const Options *options)
{
    uint64_t start = now_ns();
    for (uint64_t i = 0; i < options->messages; i++)
        connection_close(connection_open(&options->address, 0));
    print_count(options->messages, start);
}

void churn_queues(const Options *options)
{
    Connection *connection = connection_open(&options->address, 0);
    Queue queue = {.name = options->name, .durable = options->durable};
    uint64_t start = now_ns();
    for (uint64_t i = 0; i < options->messages; i++) {
        queue_declare(connection, &queue);
        queue_delete(connection, options->name);
    }
    print_count(options->messages, start);
    connection_close(connection);
}

/* Whether standard input says that it is enough, within a second. */
static int is_told_to_go(void)
{
    struct timeval second = {.tv_sec = 1};
    fd_set input;
    FD_ZERO(&input);
    FD_SET(0, &input);
    return select(1, &input, NULL, NULL, &second) > 0;
}

static void send_heartbeats(Connection **open, int count)
{
    for (int i = 0; i < count; i++) {
        Buffer *out = &open[i]->out;
        put_u8(out, FRAME_HEARTBEAT);
        put_u16(out, 0);
        put_u32(out, 0);
        put_u8(out, FRAME_END);
        connection_flush(open[i]);
    }
}

void idle(const Options *options)
{
    struct rlimit files;
    int count = options->connections, beat = options->address.heartbeat;
    Connection **open = calloc((size_t)count, sizeof *open);
    if (!open)
        die("out of memory");
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    uint64_t start = now_ns();
    for (int i = 0; i < count; i++)
        open[i] = connection_open(&options->address, 0);
    double seconds = (double)(now_ns() - start) / 1e9;
    printf("{\"stage\": \"ready\"}\n");
    fflush(stdout);
    for (int second = 1; !is_told_to_go(); second++)
        if (beat && second % (beat / 2) == 0)
            send_heartbeats(open, count);
    for (int i = 0; i < count; i++)
        connection_close(open[i]);
    printf("{\"connections\": %d, \"seconds\": %.6f}\n", count, seconds);
}
