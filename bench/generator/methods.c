/* The synchronous methods that set a benchmark up and take it down. */
#include "amqp.h"

#include <stdlib.h>
#include <string.h>

static size_t begin_table(Buffer *out)
{
    size_t start = out->length;
    put_u32(out, 0);
    return start;
}

static void end_table(Buffer *out, size_t start)
{
    uint32_t size = __builtin_bswap32((uint32_t)(out->length - start - 4));
    memcpy(out->data + start, &size, 4);
}

static void put_text(Buffer *out, const char *name, const char *value)
{
    put_shortstr(out, name);
    put_u8(out, 'S');
    put_u32(out, (uint32_t)strlen(value));
    put_bytes(out, value, strlen(value));
}

static void put_number(Buffer *out, const char *name, int value)
{
    if (!value)
        return;
    put_shortstr(out, name);
    put_u8(out, 'I');
    put_u32(out, (uint32_t)value);
}

static void put_queue_arguments(Buffer *out, const Queue *queue)
{
    size_t start = begin_table(out);
    if (queue->lazy)
        put_text(out, "x-queue-mode", "lazy");
    if (queue->dead_letter) {
        put_text(out, "x-dead-letter-exchange", "");
        put_text(out, "x-dead-letter-routing-key", queue->dead_letter);
    }
    put_number(out, "x-max-priority", queue->max_priority);
    put_number(out, "x-message-ttl", queue->message_ttl);
    put_number(out, "x-max-length", queue->max_length);
    end_table(out, start);
}

static void declare(Connection *connection, const Queue *queue, int passive, Buffer *reply)
{
    Buffer *out = &connection->out;
    size_t start = begin_method(out, 1, METHOD_ID(50, 10));
    put_u16(out, 0);
    put_shortstr(out, queue->name);
    put_u8(out, (uint8_t)((passive ? 1 : 0) | (queue->durable ? 2 : 0)));
    put_queue_arguments(out, queue);
    end_frame(out, start);
    expect_method(connection, METHOD_ID(50, 11), reply);
}

void queue_declare(Connection *connection, const Queue *queue) { declare(connection, queue, 0, NULL); }

uint32_t queue_count(Connection *connection, const char *name)
{
    Buffer reply = {0};
    Queue queue = {.name = name};
    declare(connection, &queue, 1, &reply);
    uint32_t count = get_u32(reply.data + 5 + reply.data[4]);
    free(reply.data);
    return count;
}

void queue_delete(Connection *connection, const char *name)
{
    size_t start = begin_method(&connection->out, 1, METHOD_ID(50, 40));
    put_u16(&connection->out, 0);
    put_shortstr(&connection->out, name);
    put_u8(&connection->out, 0);
    end_frame(&connection->out, start);
    expect_method(connection, METHOD_ID(50, 41), NULL);
}

void exchange_declare(Connection *connection, const char *name, const char *type, int durable)
{
    size_t start = begin_method(&connection->out, 1, METHOD_ID(40, 10));
    put_u16(&connection->out, 0);
    put_shortstr(&connection->out, name);
    put_shortstr(&connection->out, type);
    put_u8(&connection->out, durable ? 2 : 0);
    put_u32(&connection->out, 0);
    end_frame(&connection->out, start);
    expect_method(connection, METHOD_ID(40, 11), NULL);
}

void exchange_delete(Connection *connection, const char *name)
{
    size_t start = begin_method(&connection->out, 1, METHOD_ID(40, 20));
    put_u16(&connection->out, 0);
    put_shortstr(&connection->out, name);
    put_u8(&connection->out, 0);
    end_frame(&connection->out, start);
    expect_method(connection, METHOD_ID(40, 21), NULL);
}

void queue_bind(Connection *connection, const char *queue, const char *exchange, const char *key, const char *header)
{
    size_t start = begin_method(&connection->out, 1, METHOD_ID(50, 20));
    put_u16(&connection->out, 0);
    put_shortstr(&connection->out, queue);
    put_shortstr(&connection->out, exchange);
    put_shortstr(&connection->out, key);
    put_u8(&connection->out, 0);
    if (header)
        put_header(&connection->out, header);
    else
        put_u32(&connection->out, 0);
    end_frame(&connection->out, start);
    expect_method(connection, METHOD_ID(50, 21), NULL);
}

void confirm_select(Connection *connection)
{
    size_t start = begin_method(&connection->out, 1, METHOD_ID(85, 10));
    put_u8(&connection->out, 0);
    end_frame(&connection->out, start);
    expect_method(connection, METHOD_ID(85, 11), NULL);
}

void basic_qos(Connection *connection, uint16_t prefetch)
{
    size_t start = begin_method(&connection->out, 1, METHOD_ID(60, 10));
    put_u32(&connection->out, 0);
    put_u16(&connection->out, prefetch);
    put_u8(&connection->out, 0);
    end_frame(&connection->out, start);
    expect_method(connection, METHOD_ID(60, 11), NULL);
}

void basic_consume(Connection *connection, const char *queue, const char *tag, int no_ack)
{
    size_t start = begin_method(&connection->out, 1, METHOD_ID(60, 20));
    put_u16(&connection->out, 0);
    put_shortstr(&connection->out, queue);
    put_shortstr(&connection->out, tag);
    put_u8(&connection->out, no_ack ? 2 : 0);
    put_u32(&connection->out, 0);
    end_frame(&connection->out, start);
    expect_method(connection, METHOD_ID(60, 21), NULL);
}

void put_ack(Buffer *buffer, uint64_t tag, int multiple)
{
    size_t start = begin_method(buffer, 1, BASIC_ACK);
    put_u64(buffer, tag);
    put_u8(buffer, (uint8_t)multiple);
    end_frame(buffer, start);
}

void put_reject(Buffer *buffer, uint64_t tag, int requeue)
{
    size_t start = begin_method(buffer, 1, BASIC_REJECT);
    put_u64(buffer, tag);
    put_u8(buffer, (uint8_t)requeue);
    end_frame(buffer, start);
}

static void call_tx(Connection *connection, uint16_t method)
{
    end_frame(&connection->out, begin_method(&connection->out, 1, METHOD_ID(90, method)));
    expect_method(connection, METHOD_ID(90, method + 1), NULL);
}

void tx_select(Connection *connection) { call_tx(connection, 10); }
void tx_commit(Connection *connection) { call_tx(connection, 20); }

int basic_get(Connection *connection, const char *queue, int no_ack, uint32_t *left)
{
    Frame frame;
    size_t start = begin_method(&connection->out, 1, METHOD_ID(60, 70));
    put_u16(&connection->out, 0);
    put_shortstr(&connection->out, queue);
    put_u8(&connection->out, (uint8_t)no_ack);
    end_frame(&connection->out, start);
    connection_flush(connection);
    for (;;) {
        if (!connection_read(connection, &frame))
            die("connection lost while waiting for basic.get-ok");
        check_not_closed(&frame);
        if (frame.type != FRAME_METHOD)
            continue;
        if (get_u32(frame.payload) == METHOD_ID(60, 72))
            return 0;
        if (get_u32(frame.payload) == METHOD_ID(60, 71))
            break;
    }
    const uint8_t *at = frame.payload + 13; /* id 4, tag 8, redelivered 1 */
    at += 1 + at[0];
    at += 1 + at[0];
    *left = get_u32(at);
    uint64_t size = 0, seen = 0;
    int has_header = 0;
    while (!has_header || seen < size) {
        if (!connection_read(connection, &frame))
            die("connection lost inside a message");
        if (frame.type == FRAME_HEADER) {
            has_header = 1;
            size = get_u64(frame.payload + 4);
        } else if (frame.type == FRAME_BODY) {
            seen += frame.size;
        }
    }
    return 1;
}
