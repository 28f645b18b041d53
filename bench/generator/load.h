/* What one run of the generator does, shared by its producer and consumer threads. */
#ifndef BENCH_LOAD_H
#define BENCH_LOAD_H

#include "amqp.h"

#include <pthread.h>
#include <stdatomic.h>

enum { MAX_PRODUCERS = 256, MAX_THREADS = 1024 };

typedef struct {
    Address address;
    const char *mode, *name;
    int queues, producers, consumers; /* consumers: of each queue */
    int fanout, vary, persistent, durable, lazy, verify, stall, latency, append;
    int spread, topic, headers; /* each producer to all queues in turn: by their names, by keys, by a header */
    int one_channel;            /* one consumer of each queue, all of them on one channel */
    int bindings;               /* topic: so many more that no key matches */
    uint64_t keys;              /* topic: different keys, in turn */
    uint64_t messages; /* published in all; with consumers each queue is read up to its share */
    uint32_t size;
    int confirm, prefetch, ack_every; /* prefetch 0: automatic acknowledgement */
    uint32_t batch;                   /* octets of one write; 0: one write a message */
    double rate;                      /* messages a second of each producer, 0: as fast as it goes */
    int connections, timeout_s;
} Options;

typedef struct {
    const Options *options;
    pthread_barrier_t ready;   /* subscribed and connected, the clock starts */
    pthread_barrier_t written; /* stalled consumers: everything is published, go on reading */
    uint64_t start_ns;
    uint64_t queue_share; /* messages that each queue's consumers see together */
    _Atomic uint64_t *queue_consumed;
    _Atomic uint64_t published, confirmed, nacked, consumed;
    _Atomic uint64_t late_ns; /* the last message consumed, or the last end marker */
    _Atomic uint64_t cpu_busiest_ns;
    uint32_t *latency_ns;
} Run;

typedef struct {
    Run *run;
    int index;
    int queue;
    Connection *connection;
    pthread_t thread;
} Worker;

void queue_name(const Options *options, int index, char *text, size_t size);
int is_spread(const Options *options);
void note_time(_Atomic uint64_t *latest, uint64_t value); /* keeps the maximum */
void *producer_main(void *worker);
void *consumer_main(void *worker);

/* Bodies: 8 octets producer << 48 | sequence number, then (with size for it) 8 octets of send time in latency runs,
 * then a fixed pattern, so that a reader can prove order and content without being told anything. */
void body_fill(uint8_t *body, uint32_t size, uint64_t label);
void body_check(const uint8_t *part, uint32_t offset, uint32_t length);

#endif
