/* AMQP 0-9-1 for the load generator: one blocking connection with one channel.
 *
 * Only what a benchmark client needs: handshake, a handful of methods, buffered reading and writing.
 * Every mistake of the peer (bad frame end, unexpected close) ends the process with a JSON error line,
 * because a benchmark that goes on after a protocol error measures nothing. */
#ifndef BENCH_AMQP_H
#define BENCH_AMQP_H

#include <stddef.h>
#include <stdint.h>

enum { FRAME_METHOD = 1, FRAME_HEADER = 2, FRAME_BODY = 3, FRAME_HEARTBEAT = 8, FRAME_END = 0xCE };
enum { READ_SIZE = 256 * 1024 };

#define METHOD_ID(class_id, method_id) (((uint32_t)(class_id) << 16) | (method_id))
#define BASIC_DELIVER METHOD_ID(60, 60)
#define BASIC_ACK METHOD_ID(60, 80)
#define BASIC_REJECT METHOD_ID(60, 90)
#define BASIC_NACK METHOD_ID(60, 120)

typedef struct {
    uint8_t *data;
    size_t length, capacity;
} Buffer;

typedef struct {
    uint8_t type;
    uint16_t channel;
    uint32_t size;
    const uint8_t *payload; /* valid until the next read on the connection */
} Frame;

typedef struct {
    int fd;
    void *tls; /* NULL: octets as they are */
    uint32_t frame_max;
    Buffer in, out;
    size_t in_start;
} Connection;

typedef struct {
    const char *host;
    int port;
    const char *user, *password;
    int tls, heartbeat;
} Address;

void die(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
uint64_t now_ns(void);
uint64_t thread_cpu_ns(void);

void put_bytes(Buffer *buffer, const void *bytes, size_t length);
void put_u8(Buffer *buffer, uint8_t value);
void put_u16(Buffer *buffer, uint16_t value);
void put_u32(Buffer *buffer, uint32_t value);
void put_u64(Buffer *buffer, uint64_t value);
void put_shortstr(Buffer *buffer, const char *text);
void put_header(Buffer *buffer, const char *value); /* a table of one entry, "n" */
uint16_t get_u16(const uint8_t *bytes);
uint32_t get_u32(const uint8_t *bytes);
uint64_t get_u64(const uint8_t *bytes);

/* A method frame is begun, its arguments are put, then it is ended (the size is patched). */
size_t begin_method(Buffer *buffer, uint16_t channel, uint32_t method);
void end_frame(Buffer *buffer, size_t start);

/* NULL when nobody listens yet (only with may_fail), else an open connection with channel 1. */
Connection *connection_open(const Address *address, int may_fail);
void connection_close(Connection *connection);
void connection_flush(Connection *connection);
int connection_buffered(const Connection *connection, Frame *frame); /* 1 and the frame, 0 none whole */
int connection_receive(Connection *connection);                      /* bytes read, 0 at the end */
int connection_readable(const Connection *connection);
int connection_read(Connection *connection, Frame *frame); /* blocking; 0 at the end of the stream */
void frame_consume(Connection *connection, const Frame *frame);
void check_not_closed(const Frame *frame);
/* Flushes, then reads up to the wanted method; its payload is copied into reply (4 octets of id first). */
void expect_method(Connection *connection, uint32_t method, Buffer *reply);

/* TLS from the system's libssl, which is looked for at first use; the peer's certificate is not checked. */
void *tls_connect(int fd);
long tls_send(void *tls, const void *bytes, size_t length);
long tls_receive(void *tls, void *bytes, size_t length);
void tls_free(void *tls);

typedef struct {
    const char *name;
    int durable, lazy, max_priority, message_ttl, max_length;
    const char *dead_letter; /* the queue that rejected messages go to */
} Queue;

void queue_declare(Connection *connection, const Queue *queue);
uint32_t queue_count(Connection *connection, const char *name); /* passive declare */
void queue_delete(Connection *connection, const char *name);
void exchange_declare(Connection *connection, const char *name, const char *type, int durable);
void exchange_delete(Connection *connection, const char *name);
/* With a header, the binding asks for it: its name is "n", this its value. */
void queue_bind(Connection *connection, const char *queue, const char *exchange, const char *key, const char *header);
void confirm_select(Connection *connection);
void basic_qos(Connection *connection, uint16_t prefetch);
void basic_consume(Connection *connection, const char *queue, const char *tag, int no_ack);
void put_ack(Buffer *buffer, uint64_t tag, int multiple);
void put_reject(Buffer *buffer, uint64_t tag, int requeue);
void tx_select(Connection *connection);
void tx_commit(Connection *connection);
/* 1 and the number of messages left after a get-ok; 0 when the queue is empty. */
int basic_get(Connection *connection, const char *queue, int no_ack, uint32_t *left);

#endif
