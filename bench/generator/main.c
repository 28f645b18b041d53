/* Load generator for AMQP 0-9-1 brokers: one thread a connection, one JSON object on standard output.
 *
 *   generator --mode load    publish and/or consume as the options say (see usage())
 *   generator --mode get     connect as soon as somebody listens, one basic.get, print when it answered
 *   generator --mode idle    open connections with one channel each, print "ready", close when standard input ends
 *   generator --mode delete  delete the queues and the exchange
 *   generator --mode churn   open and close a connection with a channel, so many times as there are messages
 *   generator --mode queues  declare and delete a queue, as often
 *
 * The rate counts from the moment when everybody is connected and subscribed to the last message consumed, or,
 * without consumers, to the reply of a passive declare sent after the last message (so socket buffers do not count). */
#include "load.h"

#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static Run *watched; /* for the alarm handler only */

void queue_name(const Options *options, int index, char *text, size_t size)
{
    snprintf(text, size, options->queues > 1 ? "%s-%d" : "%s", options->name, index);
}

void note_time(_Atomic uint64_t *latest, uint64_t value)
{
    uint64_t seen = atomic_load(latest);
    while (value > seen && !atomic_compare_exchange_weak(latest, &seen, value))
        ;
}

int is_copied(const Options *options) { return options->fanout || options->one_channel || options->dead_letter || options->cc; }

int is_spread(const Options *options) { return options->spread || options->topic || options->headers; }

/* NULL: the default exchange. */
static const char *exchange_type(const Options *options)
{
    return options->fanout ? "fanout" : options->topic ? "topic" : options->headers ? "headers" : NULL;
}

static void bind_queue(const Options *options, Connection *connection, int index)
{
    char queue[128], key[64] = "", value[16];
    queue_name(options, index, queue, sizeof queue);
    if (options->topic)
        snprintf(key, sizeof key, "*.%d.#", index);
    snprintf(value, sizeof value, "%d", index);
    queue_bind(connection, queue, options->name, key, options->headers ? value : NULL);
    for (int i = 0; options->topic && index == 0 && i < options->bindings; i++) {
        snprintf(key, sizeof key, "other.%d.*.none", i);
        queue_bind(connection, queue, options->name, key, NULL);
    }
}

static double cpu_seconds(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)usage.ru_utime.tv_sec + (double)usage.ru_stime.tv_sec +
           ((double)usage.ru_utime.tv_usec + (double)usage.ru_stime.tv_usec) / 1e6;
}

static void too_late(int signal)
{
    (void)signal;
    if (watched)
        die("not finished in time: %llu published, %llu consumed", (unsigned long long)atomic_load(&watched->published),
            (unsigned long long)atomic_load(&watched->consumed));
    die("not finished in time");
}

static void each_queue(const Options *options, Connection *connection, int delete)
{
    char name[128], second[128];
    const char *type = exchange_type(options);
    queue_name(options, 1, second, sizeof second);
    if (type && delete)
        exchange_delete(connection, options->name);
    if (type && !delete)
        exchange_declare(connection, options->name, type, options->durable);
    for (int i = 0; i < options->queues; i++) {
        queue_name(options, i, name, sizeof name);
        Queue queue = {.name = name, .durable = options->durable, .lazy = options->lazy, .max_priority = options->priorities};
        queue.message_ttl = options->message_ttl;
        queue.max_length = options->max_length;
        if (options->dead_letter && i == 0)
            queue.dead_letter = second;
        if (delete)
            queue_delete(connection, name);
        else
            queue_declare(connection, &queue);
        if (type && !delete)
            bind_queue(options, connection, i);
    }
}

static int compare_u32(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static void print_latency(Run *run)
{
    uint64_t skip = run->options->messages / 10, count = run->options->messages - skip;
    uint32_t *sorted = run->latency_ns + skip; /* the first tenth warms up */
    qsort(sorted, count, sizeof *sorted, compare_u32);
    printf(", \"p50_us\": %.1f, \"p99_us\": %.1f, \"p999_us\": %.1f, \"max_us\": %.1f", sorted[count / 2] / 1e3,
           sorted[count * 99 / 100] / 1e3, sorted[count * 999 / 1000] / 1e3, sorted[count - 1] / 1e3);
}

static void print_result(Run *run, uint64_t messages_left, double cpu)
{
    const Options *options = run->options;
    double seconds = (double)(atomic_load(&run->late_ns) - run->start_ns) / 1e9;
    uint64_t published = atomic_load(&run->published), consumed = atomic_load(&run->consumed);
    uint64_t counted = options->consumers ? consumed : published;
    printf("{\"published\": %llu, \"consumed\": %llu, \"confirmed\": %llu, \"nacked\": %llu, \"queue_messages\": %llu, "
           "\"seconds\": %.6f, \"rate\": %.1f, \"client_cpu_s\": %.4f, \"client_busiest_thread_s\": %.4f",
           (unsigned long long)published, (unsigned long long)consumed, (unsigned long long)atomic_load(&run->confirmed),
           (unsigned long long)atomic_load(&run->nacked), (unsigned long long)messages_left, seconds,
           (double)counted / seconds, cpu, (double)atomic_load(&run->cpu_busiest_ns) / 1e9);
    if (options->latency || options->rpc)
        print_latency(run);
    printf("}\n");
}

static void wait_for_go(void)
{
    char line[64];
    printf("{\"stage\": \"ready\"}\n");
    fflush(stdout);
    if (!fgets(line, sizeof line, stdin))
        return;
}

static void run_workers(Run *run, Worker *workers, int count)
{
    const Options *options = run->options;
    for (int i = 0; i < count; i++) {
        int is_producer = i < options->producers;
        void *(*main)(void *) = is_producer ? options->rpc ? caller_main : producer_main : options->rpc ? answerer_main : consumer_main;
        Worker *worker = &workers[i];
        worker->run = run;
        worker->index = is_producer ? i : i - options->producers;
        worker->queue = worker->index % options->queues;
        worker->connection = connection_open(&options->address, 0);
        if (pthread_create(&worker->thread, NULL, main, worker) != 0)
            die("no more threads");
    }
    pthread_barrier_wait(&run->ready);
    run->start_ns = now_ns();
    if (options->stall) { /* producers have ended once they wait; consumers wait for us */
        for (int i = 0; i < options->producers; i++)
            while (atomic_load(&run->published) < options->messages)
                usleep(10000);
        wait_for_go();
    }
    pthread_barrier_wait(&run->written);
    for (int i = 0; i < count; i++)
        pthread_join(workers[i].thread, NULL);
}

static uint64_t count_all(const Options *options, Connection *control)
{
    char name[128];
    uint64_t sum = 0;
    for (int i = 0; i < options->queues; i++) {
        queue_name(options, i, name, sizeof name);
        sum += queue_count(control, name);
    }
    return sum;
}

/* A broker may answer a passive declare before the queue has taken what its channel has sent (RabbitMQ ranks it higher):
 * the clock stops when the queues hold everything. */
static uint64_t await_all(Run *run, Connection *control, uint64_t before)
{
    const Options *options = run->options;
    uint64_t due = options->messages * (uint64_t)(options->fanout ? options->queues : 1), held;
    if (options->max_length && due > (uint64_t)options->max_length)
        due = (uint64_t)options->max_length;
    while ((held = count_all(options, control) - before) != due) {
        if (held > due)
            die("the queues have %llu messages, %llu were published", (unsigned long long)held, (unsigned long long)due);
        usleep(1000);
        note_time(&run->late_ns, now_ns());
    }
    return held + before;
}

static void prepare(Run *run, const Options *options, int count)
{
    run->options = options;
    run->queue_share = is_copied(options) ? options->messages : options->messages / (uint64_t)options->queues;
    run->queue_consumed = calloc((size_t)options->queues, sizeof *run->queue_consumed);
    run->latency_ns = calloc(options->latency || options->rpc ? options->messages : 1, sizeof *run->latency_ns);
    if (!run->queue_consumed || !run->latency_ns)
        die("out of memory");
    pthread_barrier_init(&run->ready, NULL, (unsigned)count + 1);
    pthread_barrier_init(&run->written, NULL, (unsigned)count + 1);
}

static void load(Options *options)
{
    static Run run;
    static Worker workers[MAX_THREADS];
    int count = options->producers + (options->one_channel ? 1 : options->consumers * options->queues);
    if (count > MAX_THREADS || options->producers > MAX_PRODUCERS)
        die("too many connections");
    if (options->producers) /* so that every producer and every queue has the same share */
        options->messages -= options->messages % (uint64_t)(options->producers * (options->fanout ? 1 : options->queues));
    prepare(&run, options, count);
    watched = &run;
    Connection *control = connection_open(&options->address, 0);
    if (!options->append) {
        each_queue(options, control, 1);
        each_queue(options, control, 0);
    }
    uint64_t before = count_all(options, control);
    double cpu = cpu_seconds();
    run_workers(&run, workers, count);
    uint64_t left = options->consumers ? count_all(options, control) : await_all(&run, control, before);
    cpu = cpu_seconds() - cpu;
    for (int i = 0; i < count; i++)
        connection_close(workers[i].connection);
    connection_close(control);
    print_result(&run, left, cpu);
}

static void first_get(const Options *options)
{
    uint64_t start = now_ns();
    uint32_t left = 0;
    Connection *connection;
    while (!(connection = connection_open(&options->address, 1)))
        usleep(2000);
    uint64_t connected = now_ns();
    int found = basic_get(connection, options->name, 0, &left);
    uint64_t answered = now_ns();
    printf("{\"found\": %d, \"left\": %u, \"connected_s\": %.6f, \"seconds\": %.6f, \"answered_ns\": %llu}\n", found, left,
           (double)(connected - start) / 1e9, (double)(answered - start) / 1e9, (unsigned long long)answered);
    fflush(stdout);
    connection_close(connection);
}

static void delete_all(const Options *options)
{
    Connection *connection = connection_open(&options->address, 0);
    each_queue(options, connection, 1);
    connection_close(connection);
    printf("{\"deleted\": %d}\n", options->queues);
}

enum { OPTION_NUMBER, OPTION_LARGE, OPTION_TEXT, OPTION_REAL, OPTION_SWITCH, OPTION_SIZE };

typedef struct {
    const char *name;
    int kind;
    void *target;
} Setting;

static void apply(const Setting *setting, const char *value)
{
    if (setting->kind == OPTION_SWITCH)
        *(int *)setting->target = 1;
    else if (setting->kind == OPTION_NUMBER)
        *(int *)setting->target = atoi(value);
    else if (setting->kind == OPTION_LARGE)
        *(uint64_t *)setting->target = strtoull(value, NULL, 10);
    else if (setting->kind == OPTION_SIZE)
        *(uint32_t *)setting->target = (uint32_t)strtoul(value, NULL, 10);
    else if (setting->kind == OPTION_REAL)
        *(double *)setting->target = strtod(value, NULL);
    else
        *(const char **)setting->target = value;
}

static void parse(Options *o, int argc, char **argv)
{
    const Setting settings[] = {
        {"mode", OPTION_TEXT, &o->mode},           {"host", OPTION_TEXT, &o->address.host},
        {"port", OPTION_NUMBER, &o->address.port}, {"name", OPTION_TEXT, &o->name},
        {"queues", OPTION_NUMBER, &o->queues},     {"producers", OPTION_NUMBER, &o->producers},
        {"consumers", OPTION_NUMBER, &o->consumers}, {"messages", OPTION_LARGE, &o->messages},
        {"size", OPTION_SIZE, &o->size},           {"confirm", OPTION_NUMBER, &o->confirm},
        {"prefetch", OPTION_NUMBER, &o->prefetch}, {"ack-every", OPTION_NUMBER, &o->ack_every},
        {"batch", OPTION_SIZE, &o->batch},         {"rate", OPTION_REAL, &o->rate},
        {"connections", OPTION_NUMBER, &o->connections}, {"timeout", OPTION_NUMBER, &o->timeout_s},
        {"fanout", OPTION_SWITCH, &o->fanout},     {"vary", OPTION_SWITCH, &o->vary},
        {"persistent", OPTION_SWITCH, &o->persistent}, {"durable", OPTION_SWITCH, &o->durable},
        {"lazy", OPTION_SWITCH, &o->lazy},         {"verify", OPTION_SWITCH, &o->verify},
        {"stall", OPTION_SWITCH, &o->stall},       {"latency", OPTION_SWITCH, &o->latency},
        {"append", OPTION_SWITCH, &o->append},     {"spread", OPTION_SWITCH, &o->spread},
        {"topic", OPTION_SWITCH, &o->topic},       {"headers", OPTION_SWITCH, &o->headers},
        {"keys", OPTION_LARGE, &o->keys},          {"bindings", OPTION_NUMBER, &o->bindings},
        {"one-channel", OPTION_SWITCH, &o->one_channel},
        {"expiration", OPTION_TEXT, &o->expiration}, {"reply-to", OPTION_TEXT, &o->reply_to},
        {"priorities", OPTION_NUMBER, &o->priorities}, {"cc", OPTION_SWITCH, &o->cc},
        {"message-ttl", OPTION_NUMBER, &o->message_ttl}, {"max-length", OPTION_NUMBER, &o->max_length},
        {"dead-letter", OPTION_SWITCH, &o->dead_letter}, {"requeue", OPTION_SWITCH, &o->requeue},
        {"get", OPTION_SWITCH, &o->get},           {"rpc", OPTION_SWITCH, &o->rpc},
        {"transaction", OPTION_NUMBER, &o->transaction}, {"ahead", OPTION_NUMBER, &o->ahead},
        {"tls", OPTION_SWITCH, &o->address.tls},   {"heartbeat", OPTION_NUMBER, &o->address.heartbeat},
    };
    enum { COUNT = sizeof settings / sizeof *settings };
    struct option known[COUNT + 1] = {0};
    int at;
    for (int i = 0; i < COUNT; i++)
        known[i] = (struct option){.name = settings[i].name, .has_arg = settings[i].kind != OPTION_SWITCH};
    while (getopt_long(argc, argv, "", known, &at) == 0)
        apply(&settings[at], optarg);
    if (optind < argc)
        die("unexpected argument %s", argv[optind]);
}

int main(int argc, char **argv)
{
    Options options = {.address = {.host = "127.0.0.1", .port = 5672, .user = "guest", .password = "guest"},
                       .mode = "load", .name = "bench", .queues = 1, .producers = 1, .messages = 100000, .size = 16,
                       .ack_every = 1, .keys = 1, .batch = 32 * 1024, .connections = 500, .timeout_s = 300};
    parse(&options, argc, argv);
    if (options.one_channel && (options.consumers != 1 || options.producers != 1 || !is_spread(&options)))
        die("one channel takes one producer to all queues and one consumer of each");
    if (options.ahead && (options.producers != 1 || !options.consumers))
        die("a queue is kept short for one producer, by its consumers");
    if (options.latency && options.size < 16)
        die("latency needs bodies of 16 octets or more");
    signal(SIGALRM, too_late);
    alarm((unsigned)options.timeout_s);
    if (strcmp(options.mode, "load") == 0)
        load(&options);
    else if (strcmp(options.mode, "get") == 0)
        first_get(&options);
    else if (strcmp(options.mode, "idle") == 0)
        idle(&options);
    else if (strcmp(options.mode, "churn") == 0)
        churn_connections(&options);
    else if (strcmp(options.mode, "queues") == 0)
        churn_queues(&options);
    else if (strcmp(options.mode, "delete") == 0)
        delete_all(&options);
    else
        die("unknown mode %s", options.mode);
    return 0;
}
