/* A message's header frame, with the properties that the run asks for, and its body frames. */
#include "load.h"

#include <stdlib.h>
#include <string.h>

enum { HEADERS = 1 << 13, DELIVERY_MODE = 1 << 12, PRIORITY = 1 << 11, REPLY_TO = 1 << 9, EXPIRATION = 1 << 8, MESSAGE_ID = 1 << 7 };

char *write_number(char *at, const char *text, uint64_t number)
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

/* A table of one entry, "CC": the names of all queues but the first. */
static void put_copies(Buffer *out, const Options *options)
{
    char name[128];
    size_t table = out->length, array;
    put_u32(out, 0);
    put_shortstr(out, "CC");
    put_u8(out, 'A');
    array = out->length;
    put_u32(out, 0);
    for (int i = 1; i < options->queues; i++) {
        queue_name(options, i, name, sizeof name);
        put_u8(out, 'S');
        put_u32(out, (uint32_t)strlen(name));
        put_bytes(out, name, strlen(name));
    }
    uint32_t inner = __builtin_bswap32((uint32_t)(out->length - array - 4));
    uint32_t outer = __builtin_bswap32((uint32_t)(out->length - table - 4));
    memcpy(out->data + array, &inner, 4);
    memcpy(out->data + table, &outer, 4);
}

static void put_content_header(Buffer *out, const Options *options, uint64_t label, uint32_t size)
{
    uint64_t number = label & 0xffffffffffffu;
    char text[32];
    size_t start = out->length;
    put_u8(out, FRAME_HEADER);
    put_u16(out, 1);
    put_u32(out, 0);
    put_u16(out, 60);
    put_u16(out, 0);
    put_u64(out, size);
    put_u16(out, (uint16_t)((options->headers || options->cc ? HEADERS : 0) | (options->persistent ? DELIVERY_MODE : 0) |
                            (options->priorities ? PRIORITY : 0) | (options->reply_to ? REPLY_TO : 0) |
                            (options->expiration ? EXPIRATION : 0) | (options->vary ? MESSAGE_ID : 0)));
    if (options->headers) {
        write_number(text, "", number % (uint64_t)options->queues);
        put_header(out, text);
    } else if (options->cc) {
        put_copies(out, options);
    }
    if (options->persistent)
        put_u8(out, 2);
    if (options->priorities)
        put_u8(out, (uint8_t)(number % (uint64_t)options->priorities));
    if (options->reply_to)
        put_shortstr(out, options->reply_to);
    if (options->expiration)
        put_shortstr(out, options->expiration);
    if (options->vary) {
        write_number(text, "message-", number);
        put_shortstr(out, text);
    }
    end_frame(out, start);
}

size_t put_content(Buffer *out, const Options *options, uint64_t label, uint32_t size, uint32_t frame_max)
{
    uint8_t small[1024];
    uint32_t limit = frame_max - 8, offset = 0;
    put_content_header(out, options, label, size);
    size_t body_at = out->length + 7;
    uint8_t *body = size <= sizeof small ? small : malloc(size);
    if (!body)
        die("out of memory");
    body_fill(body, size, label);
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
    return body_at;
}
