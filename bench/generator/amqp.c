#include "amqp.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <arpa/inet.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

void die(const char *format, ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    for (char *c = text; *c; c++)
        if (*c == '"' || *c == '\\' || (unsigned char)*c < 32)
            *c = '\'';
    printf("{\"error\": \"%s\"}\n", text);
    fflush(stdout);
    _exit(1);
}

static uint64_t read_clock(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t now_ns(void) { return read_clock(CLOCK_MONOTONIC); }
uint64_t thread_cpu_ns(void) { return read_clock(CLOCK_THREAD_CPUTIME_ID); }

static void reserve(Buffer *buffer, size_t more)
{
    if (buffer->length + more <= buffer->capacity)
        return;
    buffer->capacity = (buffer->length + more) * 2;
    buffer->data = realloc(buffer->data, buffer->capacity);
    if (!buffer->data)
        die("out of memory");
}

void put_bytes(Buffer *buffer, const void *bytes, size_t length)
{
    reserve(buffer, length);
    memcpy(buffer->data + buffer->length, bytes, length);
    buffer->length += length;
}

void put_u8(Buffer *buffer, uint8_t value) { put_bytes(buffer, &value, 1); }

void put_u16(Buffer *buffer, uint16_t value)
{
    value = htons(value);
    put_bytes(buffer, &value, 2);
}

void put_u32(Buffer *buffer, uint32_t value)
{
    value = htonl(value);
    put_bytes(buffer, &value, 4);
}

void put_u64(Buffer *buffer, uint64_t value)
{
    value = __builtin_bswap64(value);
    put_bytes(buffer, &value, 8);
}

void put_shortstr(Buffer *buffer, const char *text)
{
    size_t length = strlen(text);
    put_u8(buffer, (uint8_t)length);
    put_bytes(buffer, text, length);
}

void put_header(Buffer *buffer, const char *value)
{
    uint32_t size = (uint32_t)strlen(value);
    put_u32(buffer, 2 + 1 + 4 + size);
    put_shortstr(buffer, "n");
    put_u8(buffer, 'S');
    put_u32(buffer, size);
    put_bytes(buffer, value, size);
}

static void put_longstr(Buffer *buffer, const char *text, size_t length)
{
    put_u32(buffer, (uint32_t)length);
    put_bytes(buffer, text, length);
}

uint16_t get_u16(const uint8_t *bytes) { return (uint16_t)(bytes[0] << 8 | bytes[1]); }

uint32_t get_u32(const uint8_t *bytes)
{
    uint32_t value;
    memcpy(&value, bytes, 4);
    return ntohl(value);
}

uint64_t get_u64(const uint8_t *bytes)
{
    uint64_t value;
    memcpy(&value, bytes, 8);
    return __builtin_bswap64(value);
}

size_t begin_method(Buffer *buffer, uint16_t channel, uint32_t method)
{
    size_t start = buffer->length;
    put_u8(buffer, FRAME_METHOD);
    put_u16(buffer, channel);
    put_u32(buffer, 0);
    put_u32(buffer, method);
    return start;
}

void end_frame(Buffer *buffer, size_t start)
{
    uint32_t size = htonl((uint32_t)(buffer->length - start - 7));
    memcpy(buffer->data + start + 3, &size, 4);
    put_u8(buffer, FRAME_END);
}

void connection_flush(Connection *connection)
{
    size_t sent = 0;
    while (sent < connection->out.length) {
        const uint8_t *from = connection->out.data + sent;
        size_t left = connection->out.length - sent;
        ssize_t n = connection->tls ? tls_send(connection->tls, from, left) : send(connection->fd, from, left, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            die("send: %s", strerror(errno));
        sent += (size_t)n;
    }
    connection->out.length = 0;
}

int connection_readable(const Connection *connection)
{
    struct pollfd p = {.fd = connection->fd, .events = POLLIN};
    return poll(&p, 1, 0) > 0;
}

int connection_receive(Connection *connection)
{
    Buffer *in = &connection->in;
    if (connection->in_start) { /* keep the incomplete tail only: at most one frame is moved */
        in->length -= connection->in_start;
        memmove(in->data, in->data + connection->in_start, in->length);
        connection->in_start = 0;
    }
    reserve(in, READ_SIZE);
    for (;;) {
        uint8_t *to = in->data + in->length;
        ssize_t n = connection->tls ? tls_receive(connection->tls, to, READ_SIZE) : recv(connection->fd, to, READ_SIZE, 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return 0;
        in->length += (size_t)n;
        return (int)n;
    }
}

int connection_buffered(const Connection *connection, Frame *frame)
{
    size_t left = connection->in.length - connection->in_start;
    const uint8_t *at = connection->in.data + connection->in_start;
    if (left < 8)
        return 0;
    uint32_t size = get_u32(at + 3);
    if (left < (size_t)size + 8)
        return 0;
    if (at[7 + size] != FRAME_END)
        die("bad frame end %u on a frame of type %u", at[7 + size], at[0]);
    *frame = (Frame){.type = at[0], .channel = get_u16(at + 1), .size = size, .payload = at + 7};
    return 1;
}

void frame_consume(Connection *connection, const Frame *frame)
{
    connection->in_start += (size_t)frame->size + 8;
}

int connection_read(Connection *connection, Frame *frame)
{
    while (!connection_buffered(connection, frame))
        if (!connection_receive(connection))
            return 0;
    frame_consume(connection, frame);
    return 1;
}

void check_not_closed(const Frame *frame)
{
    if (frame->type != FRAME_METHOD)
        return;
    uint32_t method = get_u32(frame->payload);
    if (method == METHOD_ID(10, 50) || method == METHOD_ID(20, 40))
        die("closed by the broker: %u %.*s", get_u16(frame->payload + 4), frame->payload[6],
            (const char *)frame->payload + 7);
}

void expect_method(Connection *connection, uint32_t method, Buffer *reply)
{
    Frame frame;
    connection_flush(connection);
    for (;;) {
        if (!connection_read(connection, &frame))
            die("connection lost while waiting for method %u.%u", method >> 16, method & 0xffff);
        check_not_closed(&frame);
        if (frame.type == FRAME_METHOD && get_u32(frame.payload) == method)
            break;
    }
    if (reply) {
        reply->length = 0;
        put_bytes(reply, frame.payload, frame.size);
    }
}

static int dial(const Address *address, int may_fail)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)address->port)};
    int one = 1, fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd < 0)
        die("socket: %s", strerror(errno));
    if (inet_pton(AF_INET, address->host, &to.sin_addr) != 1)
        die("not an IPv4 address: %s", address->host);
    if (connect(fd, (struct sockaddr *)&to, sizeof to) < 0) {
        close(fd);
        if (may_fail)
            return -1;
        die("connect to port %d: %s", address->port, strerror(errno));
    }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    return fd;
}

static void start_ok(Connection *connection, const Address *address)
{
    char response[256];
    int length = snprintf(response, sizeof response, "%c%s%c%s", 0, address->user, 0, address->password);
    Buffer *out = &connection->out;
    size_t start = begin_method(out, 0, METHOD_ID(10, 11));
    put_u32(out, 0);
    put_shortstr(out, "PLAIN");
    put_longstr(out, response, (size_t)length);
    put_shortstr(out, "en_US");
    end_frame(out, start);
}

static void tune_and_open(Connection *connection, const Address *address, const Buffer *tune)
{
    Buffer *out = &connection->out;
    connection->frame_max = get_u32(tune->data + 6);
    if (connection->frame_max == 0)
        connection->frame_max = 131072;
    size_t start = begin_method(out, 0, METHOD_ID(10, 31));
    put_u16(out, get_u16(tune->data + 4));
    put_u32(out, connection->frame_max);
    put_u16(out, (uint16_t)address->heartbeat);
    end_frame(out, start);
    start = begin_method(out, 0, METHOD_ID(10, 40));
    put_shortstr(out, "/");
    put_shortstr(out, "");
    put_u8(out, 0);
    end_frame(out, start);
    expect_method(connection, METHOD_ID(10, 41), NULL);
    start = begin_method(out, 1, METHOD_ID(20, 10));
    put_shortstr(out, "");
    end_frame(out, start);
    expect_method(connection, METHOD_ID(20, 11), NULL);
}

Connection *connection_open(const Address *address, int may_fail)
{
    Buffer reply = {0};
    Frame frame;
    int fd = dial(address, may_fail);
    if (fd < 0)
        return NULL;
    Connection *connection = calloc(1, sizeof *connection);
    if (!connection)
        die("out of memory");
    connection->fd = fd;
    connection->tls = address->tls ? tls_connect(fd) : NULL;
    put_bytes(&connection->out, "AMQP\0\0\11\1", 8);
    connection_flush(connection);
    if (!connection_read(connection, &frame)) { /* a listener that is not serving yet */
        if (!may_fail)
            die("connection lost before connection.start");
        close(fd);
        free(connection);
        return NULL;
    }
    start_ok(connection, address);
    expect_method(connection, METHOD_ID(10, 30), &reply);
    tune_and_open(connection, address, &reply);
    free(reply.data);
    return connection;
}

void connection_close(Connection *connection)
{
    Frame frame;
    size_t start = begin_method(&connection->out, 0, METHOD_ID(10, 50));
    put_u16(&connection->out, 200);
    put_shortstr(&connection->out, "");
    put_u32(&connection->out, 0);
    end_frame(&connection->out, start);
    connection_flush(connection);
    while (connection_read(connection, &frame))
        if (frame.type == FRAME_METHOD && get_u32(frame.payload) == METHOD_ID(10, 51))
            break;
    if (connection->tls)
        tls_free(connection->tls);
    close(connection->fd);
    free(connection->in.data);
    free(connection->out.data);
    free(connection);
}
