/* One consuming connection: checks tags, frame ends, sizes, and (when asked) the order and content of bodies. */
#include "load.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

typedef struct {
    Worker *worker;
    const Options *options;
    uint64_t next_tag, acked_tag, pending; /* pending: consumed since the queue's count was told */
    uint64_t size, seen;                   /* of the message being read */
    int in_content, is_redelivered;
    int gives_back; /* this queue's messages are rejected */
    uint64_t next_sequence[MAX_PRODUCERS]; /* of each producer; on one channel, of each queue */
} Consumer;

/* Which messages of a producer come here: all, or every so many from one on. */
static void expect_sequences(Consumer *consumer)
{
    const Options *options = consumer->options;
    for (int i = 0; i < MAX_PRODUCERS; i++)
        consumer->next_sequence[i] = (uint64_t)(!is_spread(options) ? 0 : options->one_channel ? i : consumer->worker->queue);
}

static void check_label(Consumer *consumer, const uint8_t *body)
{
    Run *run = consumer->worker->run;
    uint64_t label = get_u64(body), producer = label >> 48, sequence = label & 0xffffffffffffu;
    if (consumer->options->latency) {
        uint64_t sent_at;
        memcpy(&sent_at, body + 8, 8);
        if (sequence < consumer->options->messages)
            run->latency_ns[sequence] = (uint32_t)(now_ns() - sent_at);
    }
    if (!consumer->options->verify || consumer->options->consumers > 1)
        return;
    uint64_t step = is_spread(consumer->options) ? (uint64_t)consumer->options->queues : 1;
    uint64_t *due = &consumer->next_sequence[(consumer->options->one_channel ? sequence % step : producer) % MAX_PRODUCERS];
    if (producer >= MAX_PRODUCERS || sequence != *due)
        die("message %llu of producer %llu came, %llu was due", (unsigned long long)sequence,
            (unsigned long long)producer, (unsigned long long)*due);
    *due += step;
}

static void start_message(Consumer *consumer, const Frame *frame)
{
    check_not_closed(frame);
    if (get_u32(frame->payload) != BASIC_DELIVER)
        return;
    if (consumer->in_content)
        die("a delivery begins inside another one");
    uint64_t tag = get_u64(frame->payload + 5 + frame->payload[4]);
    if (tag != consumer->next_tag)
        die("delivery tag %llu, %llu was due", (unsigned long long)tag, (unsigned long long)consumer->next_tag);
    consumer->in_content = 1;
    consumer->is_redelivered = frame->payload[13 + frame->payload[4]];
    consumer->size = UINT64_MAX;
}

static void end_message(Consumer *consumer, Buffer *out)
{
    const Options *options = consumer->options;
    consumer->in_content = 0;
    consumer->pending += !options->requeue || consumer->is_redelivered;
    if (consumer->gives_back || (options->requeue && !consumer->is_redelivered)) {
        put_reject(out, consumer->next_tag, !consumer->gives_back);
        consumer->acked_tag = consumer->next_tag;
    } else if (options->prefetch && consumer->next_tag % (uint64_t)options->ack_every == 0) {
        put_ack(out, consumer->next_tag, options->ack_every > 1);
        consumer->acked_tag = consumer->next_tag;
    }
    consumer->next_tag++;
}

static void take_frame(Consumer *consumer, const Frame *frame, Buffer *out)
{
    if (frame->type == FRAME_METHOD) {
        start_message(consumer, frame);
    } else if (frame->type == FRAME_HEADER) {
        consumer->size = get_u64(frame->payload + 4);
        consumer->seen = 0;
        if (consumer->size == 0)
            end_message(consumer, out);
    } else if (frame->type == FRAME_BODY) {
        if (!consumer->in_content || consumer->size == UINT64_MAX)
            die("a body without its header");
        if (consumer->seen == 0 && frame->size >= 8)
            check_label(consumer, frame->payload);
        if (consumer->options->verify && !consumer->options->latency)
            body_check(frame->payload, (uint32_t)consumer->seen, frame->size);
        consumer->seen += frame->size;
        if (consumer->seen > consumer->size)
            die("a body is longer than its header says");
        if (consumer->seen == consumer->size)
            end_message(consumer, out);
    }
}

/* Tells the queue's common count; the reader of the last message wakes the others by closing nothing but their input. */
static int is_finished(Consumer *consumer)
{
    Run *run = consumer->worker->run;
    _Atomic uint64_t *total = &run->queue_consumed[consumer->worker->queue];
    uint64_t sum = atomic_fetch_add(total, consumer->pending) + consumer->pending;
    if (!consumer->gives_back) /* these come again, from another queue */
        atomic_fetch_add(&run->consumed, consumer->pending);
    consumer->pending = 0;
    if (sum > run->queue_share)
        die("queue %d gave %llu messages, %llu were due", consumer->worker->queue, (unsigned long long)sum,
            (unsigned long long)run->queue_share);
    if (sum == run->queue_share) {
        note_time(&run->late_ns, now_ns());
        return 1;
    }
    return 0;
}

static void read_until_done(Consumer *consumer)
{
    Connection *connection = consumer->worker->connection;
    _Atomic uint64_t *total = &consumer->worker->run->queue_consumed[consumer->worker->queue];
    Frame frame;
    for (;;) {
        while (connection_buffered(connection, &frame)) {
            frame_consume(connection, &frame);
            take_frame(consumer, &frame, &connection->out);
        }
        if (connection->out.length)
            connection_flush(connection);
        if (is_finished(consumer))
            return;
        struct timeval pause = {.tv_sec = 0, .tv_usec = 200000};
        if (consumer->options->consumers > 1) /* the last message may go to a neighbour */
            setsockopt(connection->fd, SOL_SOCKET, SO_RCVTIMEO, &pause, sizeof pause);
        if (connection_receive(connection))
            continue;
        if (atomic_load(total) == consumer->worker->run->queue_share)
            return;
        if (consumer->options->consumers <= 1)
            die("consumer's connection lost after %llu messages", (unsigned long long)consumer->next_tag - 1);
    }
}

/* basic.get in lock step, until the queue's share was got by all together. */
static void get_until_done(Consumer *consumer)
{
    const Options *options = consumer->options;
    _Atomic uint64_t *total = &consumer->worker->run->queue_consumed[consumer->worker->queue];
    char name[128];
    uint32_t left;
    queue_name(options, consumer->worker->queue, name, sizeof name);
    while (atomic_load(total) < consumer->worker->run->queue_share) {
        if (!basic_get(consumer->worker->connection, name, options->prefetch == 0, &left)) {
            usleep(100);
            continue;
        }
        consumer->pending++;
        if (options->prefetch)
            put_ack(&consumer->worker->connection->out, consumer->next_tag++, 0);
        if (is_finished(consumer))
            return;
    }
}

void *consumer_main(void *argument)
{
    Worker *worker = argument;
    Run *run = worker->run;
    const Options *options = run->options;
    Consumer *consumer = calloc(1, sizeof *consumer);
    char name[128];
    if (!consumer)
        die("out of memory");
    consumer->worker = worker;
    consumer->options = options;
    consumer->next_tag = 1;
    expect_sequences(consumer);
    if (options->prefetch)
        basic_qos(worker->connection, (uint16_t)options->prefetch);
    consumer->gives_back = options->dead_letter && worker->queue == 0;
    for (int i = 0; i < (options->get ? 0 : options->one_channel ? options->queues : 1); i++) {
        queue_name(options, worker->queue + i, name, sizeof name);
        basic_consume(worker->connection, name, name, options->prefetch == 0);
    }
    pthread_barrier_wait(&run->ready);
    if (options->stall)
        pthread_barrier_wait(&run->written);
    if (options->get)
        get_until_done(consumer);
    else
        read_until_done(consumer);
    if (!options->get && options->prefetch && consumer->acked_tag + 1 < consumer->next_tag)
        put_ack(&worker->connection->out, consumer->next_tag - 1, 1);
    connection_flush(worker->connection);
    note_time(&run->cpu_busiest_ns, thread_cpu_ns());
    if (!options->stall)
        pthread_barrier_wait(&run->written);
    free(consumer);
    return NULL;
}
