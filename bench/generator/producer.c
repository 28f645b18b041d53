/* One producing connection: constant messages from a prepared block, or built one by one when they vary. */
#include "load.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

enum { MIN_RING = 1 << 12 };

typedef struct {
    Worker *worker;
    const Options *options;
    Connection *connection;
    Buffer prefix;  /* basic.publish */
    uint64_t label; /* producer << 48 */
    uint64_t total, sent, confirmed, nacked;
    uint64_t base;   /* every tag up to it is confirmed */
    uint8_t *beyond; /* ring of flags: tags above base that were confirmed out of order */
    uint64_t ring;   /* its size, a power of two above the window */
} Producer;

static uint64_t last_label(const Producer *producer) { return producer->label | producer->sent; }

/* A text, the decimal number and a zero behind it; the zero's place. printf would cost more than the rest of a message. */
static char *write_number(char *at, const char *text, uint64_t number)
{
    char digits[24];
    int count = 0;
    do
        digits[count++] = (char)('0' + number % 10);
    while (number /= 10);
    while (*text)
        *at++ = *text++;
    while (count)
        *at++ = digits[--count];
    *at = 0;
    return at;
}

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

static void put_message(Producer *producer, Buffer *out, uint32_t size, int with_id)
{
    const Options *options = producer->options;
    char id[32] = "", value[24] = "";
    uint8_t small[1024];
    uint32_t limit = producer->connection->frame_max - 8, offset = 0;
    put_bytes(out, producer->prefix.data, producer->prefix.length);
    if (with_id)
        write_number(id, "message-", producer->sent);
    if (options->headers)
        write_number(value, "", next_queue(producer));
    put_u8(out, FRAME_HEADER);
    put_u16(out, 1);
    put_u32(out, 14 + (options->headers ? 4 + 2 + 1 + 4 + (uint32_t)strlen(value) : 0) + (options->persistent ? 1 : 0) +
                     (with_id ? 1 + (uint32_t)strlen(id) : 0));
    put_u16(out, 60);
    put_u16(out, 0);
    put_u64(out, size);
    put_u16(out, (uint16_t)((options->headers ? 1 << 13 : 0) | (options->persistent ? 1 << 12 : 0) | (with_id ? 1 << 7 : 0)));
    if (options->headers)
        put_header(out, value);
    if (options->persistent)
        put_u8(out, 2);
    if (with_id)
        put_shortstr(out, id);
    put_u8(out, FRAME_END);
    uint8_t *body = size <= sizeof small ? small : malloc(size);
    if (!body)
        die("out of memory");
    body_fill(body, size, last_label(producer));
    while (offset < size) {
        uint32_t part = size - offset < limit ? size - offset : limit;
        put_u8(out, FRAME_BODY);
        put_u16(out, 1);
        put_u32(out, part);
        put_bytes(out, body + offset, part);
        put_u8(out, FRAME_END);
        offset += part;
    }
    if (body != small)
        free(body);
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

static uint64_t room(Producer *producer, uint64_t wanted)
{
    uint64_t left = producer->total - producer->sent;
    wanted = wanted < left ? wanted : left;
    if (!producer->options->confirm)
        return wanted;
    read_confirms(producer, 0);
    uint64_t window, flags; /* a tag that is confirmed late leaves ever more flags behind it in the ring */
    while (producer->sent - producer->confirmed >= (uint64_t)producer->options->confirm ||
           producer->sent - producer->base >= producer->ring - 1)
        read_confirms(producer, 1);
    window = (uint64_t)producer->options->confirm - (producer->sent - producer->confirmed);
    flags = producer->ring - 1 - (producer->sent - producer->base);
    window = window < flags ? window : flags;
    return wanted < window ? wanted : window;
}

static void produce_constant(Producer *producer)
{
    Connection *connection = producer->connection;
    Buffer *out = &connection->out, block = {0};
    put_message(producer, &block, producer->options->size, 0);
    size_t each = block.length, label_at = producer->prefix.length + 7 + 14 + (producer->options->persistent ? 1 : 0) + 1 + 7;
    uint64_t fit = producer->options->batch > each ? producer->options->batch / each : 1;
    int has_label = producer->options->size >= 8;
    for (uint64_t i = 1; i < fit; i++)
        put_message(producer, &block, producer->options->size, 0);
    Buffer spare = *out; /* the block is sent as it is, patched in place */
    while (producer->sent < producer->total) {
        uint64_t count = room(producer, fit);
        for (uint64_t i = 0; i < count; i++, producer->sent++) {
            uint64_t label = __builtin_bswap64(last_label(producer));
            if (has_label)
                memcpy(block.data + i * each + label_at, &label, 8);
        }
        *out = block;
        out->length = count * each;
        connection_flush(connection);
    }
    *out = spare;
    out->length = 0;
    free(block.data);
}

static void produce_varying(Producer *producer)
{
    Buffer *out = &producer->connection->out;
    uint32_t smallest = producer->options->size, spread = producer->options->vary ? smallest * 2 + 1 : 1;
    while (producer->sent < producer->total) {
        uint64_t count = room(producer, UINT64_MAX);
        do {
            put_message(producer, out, smallest + (uint32_t)(producer->sent * 7919 % spread), 1);
            producer->sent++;
        } while (--count && out->length < producer->options->batch);
        connection_flush(producer->connection);
    }
}

static void produce_spread(Producer *producer)
{
    Buffer *out = &producer->connection->out;
    while (producer->sent < producer->total) {
        uint64_t count = room(producer, UINT64_MAX);
        do {
            set_prefix(producer);
            put_message(producer, out, producer->options->size, 0);
            producer->sent++;
        } while (--count && out->length < producer->options->batch);
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
    put_message(producer, &block, producer->options->size, 0);
    size_t body_at = block.length - 1 - producer->options->size;
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
    pthread_barrier_wait(&run->ready);
    if (options->rate > 0)
        produce_paced(&producer);
    else if (is_spread(options))
        produce_spread(&producer);
    else if (options->vary)
        produce_varying(&producer);
    else
        produce_constant(&producer);
    while (options->confirm && producer.confirmed < producer.sent)
        read_confirms(&producer, 1);
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
