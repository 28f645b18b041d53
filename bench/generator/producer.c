/* One producing connection: constant messages from a prepared block, or built one by one when they vary. */
#include "load.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum { MIN_RING = 1 << 12 };

typedef struct {
    Worker *worker;
    const Options *options;
    Connection *connection;
    Buffer prefix;  /* basic.publish */
    uint64_t label; /* producer << 48 */
    uint64_t total, sent, confirmed, nacked, committed;
    uint64_t base;   /* every tag up to it is confirmed */
    uint8_t *beyond; /* ring of flags: tags above base that were confirmed out of order */
    uint64_t ring;   /* its size, a power of two above the window */
} Producer;

static uint64_t last_label(const Producer *producer) { return producer->label | producer->sent; }

static uint64_t next_queue(const Producer *producer)
{
    return is_spread(producer->options) ? producer->sent % (uint64_t)producer->options->queues : (uint64_t)producer->worker->queue;
}

static void set_prefix(Producer *producer)
{
    const Options *options = producer->options;
    char key[128] = "";
    producer->prefix.length = 0;
    if (options->topic)
        write_number(write_number(key, "k.", next_queue(producer)), ".", producer->sent % options->keys);
    else if (options->queues > 1 && !options->fanout && !options->headers)
        write_number(stpcpy(key, options->name), "-", next_queue(producer));
    else if (!options->fanout && !options->headers)
        queue_name(options, producer->worker->queue, key, sizeof key);
    size_t start = begin_method(&producer->prefix, 1, METHOD_ID(60, 40));
    put_u16(&producer->prefix, 0);
    put_shortstr(&producer->prefix, options->fanout || options->topic || options->headers ? options->name : "");
    put_shortstr(&producer->prefix, key);
    put_u8(&producer->prefix, 0);
    end_frame(&producer->prefix, start);
}

/* The place of the body's first octet. */
static size_t put_message(Producer *producer, Buffer *out, uint32_t size)
{
    put_bytes(out, producer->prefix.data, producer->prefix.length);
    return put_content(out, producer->options, last_label(producer), size, producer->connection->frame_max);
}

/* Singly confirmed tags may run ahead of a later multiple one: each tag is counted exactly once. */
static uint64_t note_confirm(Producer *producer, uint64_t tag, int multiple)
{
    uint64_t mask = producer->ring - 1, covered = 0;
    if (tag == 0 || tag > producer->sent)
        die("confirm of %llu, only %llu were sent", (unsigned long long)tag, (unsigned long long)producer->sent);
    if (multiple) {
        for (; producer->base < tag; producer->base++) {
            covered += !producer->beyond[(producer->base + 1) & mask];
            producer->beyond[(producer->base + 1) & mask] = 0;
        }
    } else {
        if (tag <= producer->base || producer->beyond[tag & mask])
            die("message %llu was confirmed twice", (unsigned long long)tag);
        producer->beyond[tag & mask] = 1;
        covered = 1;
    }
    while (producer->beyond[(producer->base + 1) & mask])
        producer->beyond[++producer->base & mask] = 0;
    producer->confirmed += covered;
    return covered;
}

static void read_confirms(Producer *producer, int wait)
{
    Connection *connection = producer->connection;
    Frame frame;
    if (!wait && !connection_readable(connection))
        return;
    if (!connection_receive(connection))
        die("producer's connection lost, %llu sent", (unsigned long long)producer->sent);
    while (connection_buffered(connection, &frame)) {
        frame_consume(connection, &frame);
        check_not_closed(&frame);
        if (frame.type != FRAME_METHOD)
            continue;
        uint32_t method = get_u32(frame.payload);
        if (method != BASIC_ACK && method != BASIC_NACK)
            continue;
        uint64_t covered = note_confirm(producer, get_u64(frame.payload + 4), frame.payload[12] & 1);
        producer->nacked += method == BASIC_NACK ? covered : 0;
    }
}

static uint64_t smaller(uint64_t a, uint64_t b) { return a < b ? a : b; }

/* A transaction ends when it is full; how much more goes into this one. */
static uint64_t transaction_room(Producer *producer)
{
    uint64_t size = (uint64_t)producer->options->transaction;
    if (producer->sent > producer->committed && producer->sent % size == 0) {
        tx_commit(producer->connection);
        producer->committed = producer->sent;
    }
    return size - producer->sent % size;
}

/* Waits until half of what may be ahead of the consumers is consumed. */
static uint64_t short_room(Producer *producer)
{
    uint64_t most = (uint64_t)producer->options->ahead, ahead;
    while ((ahead = producer->sent - atomic_load(&producer->worker->run->consumed)) > most / 2)
        usleep(20);
    return most - ahead;
}

static uint64_t room(Producer *producer, uint64_t wanted)
{
    wanted = smaller(wanted, producer->total - producer->sent);
    if (producer->options->transaction)
        return smaller(wanted, transaction_room(producer));
    if (producer->options->ahead)
        return smaller(wanted, short_room(producer));
    if (!producer->options->confirm)
        return wanted;
    read_confirms(producer, 0);
    uint64_t window, flags; /* a tag that is confirmed late leaves ever more flags behind it in the ring */
    while (producer->sent - producer->confirmed >= (uint64_t)producer->options->confirm ||
           producer->sent - producer->base >= producer->ring - 1)
        read_confirms(producer, 1);
    window = (uint64_t)producer->options->confirm - (producer->sent - producer->confirmed);
    flags = producer->ring - 1 - (producer->sent - producer->base);
    return smaller(wanted, smaller(window, flags));
}

static void produce_constant(Producer *producer)
{
    Connection *connection = producer->connection;
    Buffer block = {0};
    size_t label_at = put_message(producer, &block, producer->options->size), each = block.length;
    uint64_t fit = producer->options->batch > each ? producer->options->batch / each : 1;
    int has_label = producer->options->size >= 8;
    for (uint64_t i = 1; i < fit; i++)
        put_message(producer, &block, producer->options->size);
    while (producer->sent < producer->total) {
        uint64_t count = room(producer, fit);
        for (uint64_t i = 0; i < count; i++, producer->sent++) {
            uint64_t label = __builtin_bswap64(last_label(producer));
            if (has_label)
                memcpy(block.data + i * each + label_at, &label, 8);
        }
        Buffer own = connection->out; /* the block is sent as it is, patched in place */
        connection->out = block;
        connection->out.length = count * each;
        connection_flush(connection);
        connection->out = own;
    }
    free(block.data);
}

/* Each message is built by itself: its size, address or properties are its own. */
static void produce_varying(Producer *producer)
{
    const Options *options = producer->options;
    Buffer *out = &producer->connection->out;
    uint32_t spread = options->vary ? options->size * 2 + 1 : 1;
    while (producer->sent < producer->total) {
        uint64_t count = room(producer, UINT64_MAX);
        do {
            if (is_spread(options))
                set_prefix(producer);
            put_message(producer, out, options->size + (uint32_t)(producer->sent * 7919 % spread));
            producer->sent++;
        } while (--count && out->length < options->batch);
        connection_flush(producer->connection);
    }
}

static void wait_until(uint64_t due_ns)
{
    struct timespec at = {.tv_sec = (time_t)(due_ns / 1000000000u), .tv_nsec = (long)(due_ns % 1000000000u)};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
}

static void produce_paced(Producer *producer)
{
    Buffer *out = &producer->connection->out, block = {0};
    uint64_t start = now_ns();
    prctl(PR_SET_TIMERSLACK, 1UL);
    size_t body_at = put_message(producer, &block, producer->options->size);
    /* Publishers do not send in step: each begins at its own part of the interval. */
    start += (uint64_t)(1e9 / producer->options->rate * producer->worker->index / producer->options->producers);
    while (producer->sent < producer->total) {
        uint64_t due = start + (uint64_t)((double)producer->sent * 1e9 / producer->options->rate);
        if (now_ns() < due)
            wait_until(due);
        uint64_t label = __builtin_bswap64(last_label(producer)), sent_at = now_ns();
        memcpy(block.data + body_at, &label, 8);
        memcpy(block.data + body_at + 8, &sent_at, 8);
        put_bytes(out, block.data, block.length);
        producer->sent++;
        connection_flush(producer->connection);
    }
    free(block.data);
}

void *producer_main(void *argument)
{
    Worker *worker = argument;
    Run *run = worker->run;
    const Options *options = run->options;
    Producer producer = {.worker = worker, .options = options, .connection = worker->connection};
    char name[128];
    producer.label = (uint64_t)worker->index << 48;
    producer.total = options->messages / (uint64_t)options->producers;
    set_prefix(&producer);
    for (producer.ring = MIN_RING; producer.ring <= (uint64_t)options->confirm; producer.ring *= 2)
        ;
    producer.beyond = calloc(producer.ring, 1);
    if (!producer.beyond)
        die("out of memory");
    if (options->confirm)
        confirm_select(worker->connection);
    if (options->transaction)
        tx_select(worker->connection);
    pthread_barrier_wait(&run->ready);
    if (options->rate > 0)
        produce_paced(&producer);
    else if (is_spread(options) || options->vary || options->priorities)
        produce_varying(&producer);
    else
        produce_constant(&producer);
    while (options->confirm && producer.confirmed < producer.sent)
        read_confirms(&producer, 1);
    if (producer.sent > producer.committed && options->transaction)
        tx_commit(worker->connection);
    /* The reply follows all publishes through the channel, so nothing waits in socket buffers any more. */
    queue_name(options, worker->queue, name, sizeof name);
    queue_count(worker->connection, name);
    if (!options->consumers)
        note_time(&run->late_ns, now_ns());
    atomic_fetch_add(&run->published, producer.sent);
    atomic_fetch_add(&run->confirmed, producer.confirmed);
    atomic_fetch_add(&run->nacked, producer.nacked);
    note_time(&run->cpu_busiest_ns, thread_cpu_ns());
    free(producer.prefix.data);
    free(producer.beyond);
    pthread_barrier_wait(&run->written);
    return NULL;
}
