/* What one run of the generator does, shared by its producer and consumer threads. */
#ifndef BENCH_LOAD_H
#define BENCH_LOAD_H

#include "amqp.h"

#include <pthread.h>
#include <stdatomic.h>

enum { MAX_PRODUCERS = 1024, MAX_THREADS = 2048 };

typedef struct {
    Address address;
    const char *mode, *name;
    int queues, producers, consumers; /* consumers: of each queue */
    int fanout, vary, persistent, durable, lazy, verify, stall, latency, append;
    int spread, topic, headers; /* each producer to all queues in turn: by their names, by keys, by a header */
    int one_channel;            /* one consumer of each queue, all of them on one channel */
    int bindings;               /* topic: so many more that no key matches */
    uint64_t keys;              /* topic: different keys, in turn */
    const char *expiration, *reply_to; /* properties of each message */
    int priorities, cc;         /* priorities in turn below that; the other queues are named in a CC header */
    int message_ttl, max_length; /* arguments of each queue */
    int dead_letter, requeue;   /* the first queue's consumer rejects to the second; each message is given back once */
    int get, rpc;               /* consumers ask with basic.get; producers call, consumers answer */
    int transaction;            /* messages of each */
    int ahead;                  /* most that are published and not consumed: a queue that stays short */
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
int is_copied(const Options *options); /* whether each queue sees every message */
void note_time(_Atomic uint64_t *latest, uint64_t value); /* keeps the maximum */
void *producer_main(void *worker);
void *consumer_main(void *worker);
void *caller_main(void *worker);
void *answerer_main(void *worker);
void churn_connections(const Options *options);
void churn_queues(const Options *options);
void idle(const Options *options); /* prints "ready", closes when standard input says so */
/* A text, the decimal number and a zero behind it; the zero's place. printf would cost more than the rest of a message. */
char *write_number(char *at, const char *text, uint64_t number);
/* A content header and a body; the place of the body's first octet. */
size_t put_content(Buffer *out, const Options *options, uint64_t label, uint32_t size, uint32_t frame_max);

/* Bodies: 8 octets producer << 48 | sequence number, then (with size for it) 8 octets of send time in latency runs,
 * then a fixed pattern, so that a reader can prove order and content without being told anything. */
void body_fill(uint8_t *body, uint32_t size, uint64_t label);
void body_check(const uint8_t *part, uint32_t offset, uint32_t length);

#endif
