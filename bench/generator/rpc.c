/* Request and reply: callers in lock step, each with a queue of its own for replies, and who answers them. */
#include "load.h"

#include <stdlib.h>
#include <stdio.h>
#include <string.h>

typedef struct {
    char reply_to[256];
    uint64_t label;
} Received;

static void reply_queue_name(const Worker *worker, char *text, size_t size)
{
    snprintf(text, size, "%s-reply-%d", worker->run->options->name, worker->index);
}

/* Frames up to the end of the next message. */
static void receive_message(Connection *connection, Received *received)
{
    Frame frame;
    uint64_t size = 0, seen = 0;
    int has_header = 0;
    while (!has_header || seen < size) {
        if (!connection_read(connection, &frame))
            die("connection lost inside a call");
        check_not_closed(&frame);
        if (frame.type == FRAME_HEADER) {
            has_header = 1;
            size = get_u64(frame.payload + 4);
            received->reply_to[0] = 0;
            if (get_u16(frame.payload + 12) == 1 << 9) { /* the only property of a call */
                memcpy(received->reply_to, frame.payload + 15, frame.payload[14]);
                received->reply_to[frame.payload[14]] = 0;
            }
        } else if (frame.type == FRAME_BODY) {
            if (seen == 0)
                received->label = get_u64(frame.payload);
            seen += frame.size;
        }
    }
}

static void put_publish(Connection *connection, const Options *options, const char *key, const char *reply_to, uint64_t label)
{
    Options own = *options;
    size_t start = begin_method(&connection->out, 1, METHOD_ID(60, 40));
    put_u16(&connection->out, 0);
    put_shortstr(&connection->out, "");
    put_shortstr(&connection->out, key);
    put_u8(&connection->out, 0);
    end_frame(&connection->out, start);
    own.reply_to = reply_to;
    put_content(&connection->out, &own, label, options->size, connection->frame_max);
}

void *caller_main(void *argument)
{
    Worker *worker = argument;
    Run *run = worker->run;
    const Options *options = run->options;
    uint64_t calls = options->messages / (uint64_t)options->producers;
    char name[128];
    Queue queue = {.name = name};
    Received received;
    reply_queue_name(worker, name, sizeof name);
    queue_declare(worker->connection, &queue);
    basic_consume(worker->connection, name, "replies", 1);
    pthread_barrier_wait(&run->ready);
    for (uint64_t i = 0; i < calls; i++) {
        uint64_t label = (uint64_t)worker->index << 48 | i, sent_at = now_ns();
        put_publish(worker->connection, options, options->name, name, label);
        connection_flush(worker->connection);
        receive_message(worker->connection, &received);
        if (received.label != label)
            die("caller %d got another call's reply", worker->index);
        run->latency_ns[(uint64_t)worker->index * calls + i] = (uint32_t)(now_ns() - sent_at);
    }
    note_time(&run->late_ns, now_ns());
    atomic_fetch_add(&run->published, calls);
    atomic_fetch_add(&run->consumed, calls);
    note_time(&run->cpu_busiest_ns, thread_cpu_ns());
    queue_delete(worker->connection, name);
    pthread_barrier_wait(&run->written);
    return NULL;
}

void *answerer_main(void *argument)
{
    Worker *worker = argument;
    Run *run = worker->run;
    const Options *options = run->options;
    Connection *connection = worker->connection;
    Received received;
    Frame frame;
    basic_consume(connection, options->name, "calls", 1);
    pthread_barrier_wait(&run->ready);
    for (uint64_t i = 0; i < options->messages; i++) {
        if (!connection_buffered(connection, &frame))
            connection_flush(connection);
        receive_message(connection, &received);
        put_publish(connection, options, received.reply_to, NULL, received.label);
    }
    connection_flush(connection);
    note_time(&run->cpu_busiest_ns, thread_cpu_ns());
    pthread_barrier_wait(&run->written);
    return NULL;
}
