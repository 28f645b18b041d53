# The compiled codec's message, and what is written from it: deliveries, replies to basic.get, returns, confirms.
#
# The twin of _message_py. Content frames go out as they came unless the channel number differs or a body frame is larger
# than the consumer's frame_max; a header frame is never divided.


@cython.final
@cython.freelist(4096)
cdef class Message:
    """One message as it came: routing, content frames, and what the flags say about them."""

    cdef readonly bytes address
    cdef readonly bytes raw
    cdef readonly int64_t size
    cdef public int64_t handle
    cdef readonly uint32_t flags
    cdef readonly uint32_t frame_max
    cdef readonly uint16_t channel

    def __init__(
        self,
        bytes address not None,
        bytes raw not None,
        int64_t size,
        uint32_t flags,
        uint16_t channel,
        uint32_t frame_max,
        int64_t handle=-1,
    ):
        self.address = address
        self.raw = raw
        self.size = size
        self.flags = flags
        self.channel = channel
        self.frame_max = frame_max
        self.handle = handle


def load_message(bytes address not None, bytes raw not None, int64_t size, uint32_t flags, int64_t handle):
    """A message from its stored parts; channel and largest frame are read from raw."""
    cdef const uint8_t *data = <const uint8_t *>PyBytes_AS_STRING(raw)
    cdef Py_ssize_t pos = 0, total = PyBytes_GET_SIZE(raw)
    cdef uint32_t largest = 0, length
    cdef Message message
    if total < 8:
        raise ValueError("content shorter than a frame")
    while pos + 8 <= total:
        length = u32(data + pos + 3) + 8
        if length > largest:
            largest = length
        pos += length
    message = Message.__new__(Message)
    message.address = address
    message.raw = raw
    message.size = size
    message.flags = flags
    message.channel = u16(data + 1)
    message.frame_max = largest
    message.handle = handle
    return message


def take(messages not None, Py_ssize_t max_count, int64_t max_bytes):
    """Take messages from the left until a limit is reached, at least one; also return their octets."""
    cdef list taken = []
    cdef int64_t total = 0
    cdef Py_ssize_t left = len(messages), count
    cdef Message message
    popleft = messages.popleft
    count = max_count if max_count > 1 else 1
    if count > left:
        count = left
    while count > 0:
        message = popleft()
        taken.append(message)
        total += message.size
        count -= 1
        if total >= max_bytes:
            break
    return taken, total


cdef inline Py_ssize_t _names_size(Message message) noexcept:
    """Octets of exchange and routing key as clients get them, without what is hidden behind them."""
    cdef Py_ssize_t size = PyBytes_GET_SIZE(message.address), end
    cdef const uint8_t *names
    if not message.flags & HIDDEN:
        return size
    names = <const uint8_t *>PyBytes_AS_STRING(message.address)
    end = 1 + <Py_ssize_t>names[0]
    if end < size:
        end += 1 + <Py_ssize_t>names[end]
    return end if end < size else size


cdef bytes _names(Message message):
    return message.address[: _names_size(message)]


cdef Py_ssize_t _body_size(Message message, uint32_t *largest) noexcept:
    """Octets in the message's body frames, counted, and the size of the largest of them."""
    cdef const uint8_t *data = <const uint8_t *>PyBytes_AS_STRING(message.raw)
    cdef Py_ssize_t total = PyBytes_GET_SIZE(message.raw), pos, size = 0
    cdef uint32_t length
    largest[0] = 0
    if total < 8:
        return 0
    pos = 8 + <Py_ssize_t>u32(data + 3)
    while pos + 8 <= total:
        length = u32(data + pos + 3)
        if <Py_ssize_t>length > total - pos - 8:
            break
        if length + 8 > largest[0]:
            largest[0] = length + 8
        size += length
        pos += 8 + <Py_ssize_t>length
    return size


cdef Py_ssize_t _content_size(Message message, uint32_t frame_max) noexcept:
    """Octets of the message's frames once no body frame is larger than frame_max (0: no limit)."""
    cdef uint32_t largest
    cdef Py_ssize_t size, limit
    if not 0 < frame_max < message.frame_max:
        return PyBytes_GET_SIZE(message.raw)
    size = _body_size(message, &largest)
    if largest <= frame_max:
        return PyBytes_GET_SIZE(message.raw)
    limit = frame_max - 8
    return (
        8
        + <Py_ssize_t>u32(<const uint8_t *>PyBytes_AS_STRING(message.raw) + 3)
        + size
        + (size + limit - 1) // limit * 8
    )


cdef uint8_t *_put_content(
    uint8_t *out, Message message, uint16_t channel, uint32_t frame_max
) noexcept:
    """Write the message's frames for a channel; return the place after them."""
    cdef const uint8_t *data = <const uint8_t *>PyBytes_AS_STRING(message.raw)
    cdef Py_ssize_t total = PyBytes_GET_SIZE(message.raw), pos = 0, size
    cdef uint32_t largest
    if 0 < frame_max < message.frame_max:
        size = _body_size(message, &largest)
        if largest > frame_max:
            return _put_cut(out, message, channel, size, frame_max - 8)
    memcpy(out, data, total)
    if message.channel != channel:
        while pos + 8 <= total:
            put16(out + pos + 1, channel)
            pos += 8 + <Py_ssize_t>u32(data + pos + 3)
    return out + total


cdef uint8_t *_put_cut(
    uint8_t *out, Message message, uint16_t channel, Py_ssize_t left, uint32_t limit
) noexcept:
    """Write the header frame, then the left octets of body in frames of limit octets.

    _body_size has walked the same frames before, so they are sound.
    """
    cdef const uint8_t *data = <const uint8_t *>PyBytes_AS_STRING(message.raw)
    cdef Py_ssize_t pos = 8 + <Py_ssize_t>u32(data + 3)
    cdef uint32_t source_left = 0, room, part
    memcpy(out, data, pos)
    put16(out + 1, channel)
    out += pos
    pos -= 1
    while left:
        room = limit if left > limit else <uint32_t>left
        left -= room
        out[0] = 3
        put16(out + 1, channel)
        put32(out + 3, room)
        out += 7
        while room:
            while not source_left:
                source_left = u32(data + pos + 4)
                pos += 8
            part = source_left if source_left < room else room
            memcpy(out, data + pos, part)
            out += part
            pos += part
            source_left -= part
            room -= part
        out[0] = FRAME_END
        out += 1
    return out


def body_bytes(messages not None):
    """Return the sum of the messages' body octets."""
    cdef int64_t total = 0
    cdef Message message
    for message in messages:
        if message is None:
            raise TypeError("None is no message")
        total += message.size
    return total


def raw_bytes(messages not None):
    """Return the sum of the messages' octets as they came: the frames of headers and bodies."""
    cdef int64_t total = 0
    cdef Message message
    for message in messages:
        if message is None:
            raise TypeError("None is no message")
        total += len(message.raw)
    return total


def encode_deliver(
    uint16_t channel,
    bytes consumer_tag not None,
    uint64_t first_tag,
    bint redelivered,
    list messages not None,
    uint32_t frame_max,
):
    """basic.deliver and content for messages with consecutive delivery tags, joined."""
    cdef Py_ssize_t count = PyList_GET_SIZE(messages), total = 0, index, address_size
    cdef Py_ssize_t tag_size = PyBytes_GET_SIZE(consumer_tag)
    cdef Py_ssize_t fixed = 7 + 4 + 1 + tag_size + 9 + 1
    cdef Message message
    cdef uint8_t *out
    cdef uint8_t *start
    cdef const uint8_t *tag_octets = <const uint8_t *>PyBytes_AS_STRING(consumer_tag)
    cdef bytes result
    if tag_size > 255:
        raise ValueError("consumer tag longer than 255 octets")
    if 0 < frame_max < 16:
        raise ValueError("frame_max too small to hold a frame")
    for index in range(count):
        message = <Message?>messages[index]
        total += fixed + _names_size(message) + _content_size(message, frame_max)
    result = PyBytes_FromStringAndSize(NULL, total)
    start = out = <uint8_t *>PyBytes_AS_STRING(result)
    for index in range(count):
        message = <Message>PyList_GET_ITEM(messages, index)
        address_size = _names_size(message)
        out[0] = 1
        put16(out + 1, channel)
        put32(out + 3, <uint32_t>(fixed - 8 + address_size))
        put32(out + 7, 60 << 16 | 60)
        out[11] = <uint8_t>tag_size
        memcpy(out + 12, tag_octets, tag_size)
        out += 12 + tag_size
        put64(out, first_tag + <uint64_t>index)
        out[8] = redelivered
        memcpy(out + 9, PyBytes_AS_STRING(message.address), address_size)
        out += 9 + address_size
        out[0] = FRAME_END
        out = _put_content(out + 1, message, channel, frame_max)
    if out - start != total:
        raise ValueError("a message's size does not match its frames")
    return result


def deliver_parts(
    uint16_t channel,
    bytes consumer_tag not None,
    uint64_t first_tag,
    bint redelivered,
    list messages not None,
    uint32_t frame_max,
):
    """The same octets in parts: frames that may go out as they came are not copied."""
    cdef list parts = []
    cdef Message message
    cdef Message head
    for index in range(PyList_GET_SIZE(messages)):
        message = <Message?>messages[index]
        if message.channel != channel or 0 < frame_max < message.frame_max:
            parts.append(
                encode_deliver(
                    channel, consumer_tag, first_tag + index, redelivered, [message], frame_max
                )
            )
            continue
        head = Message.__new__(Message)
        head.address = message.address
        head.raw = b""
        head.flags = message.flags
        head.channel = channel
        head.frame_max = 0
        parts.append(
            encode_deliver(channel, consumer_tag, first_tag + index, redelivered, [head], 0)
        )
        parts.append(message.raw)
    return parts


cdef bytes _with_content(
    uint16_t channel, uint16_t method, bytes arguments, Message message, uint32_t frame_max
):
    """A frame of a basic method and the message's content behind it."""
    cdef Py_ssize_t size = PyBytes_GET_SIZE(arguments)
    cdef Py_ssize_t total = 12 + size + _content_size(message, frame_max)
    cdef bytes result = PyBytes_FromStringAndSize(NULL, total)
    cdef uint8_t *out = <uint8_t *>PyBytes_AS_STRING(result)
    cdef uint8_t *end
    out[0] = 1
    put16(out + 1, channel)
    put32(out + 3, <uint32_t>(4 + size))
    put32(out + 7, 60 << 16 | method)
    memcpy(out + 11, PyBytes_AS_STRING(arguments), size)
    out[11 + size] = FRAME_END
    end = _put_content(out + 12 + size, message, channel, frame_max)
    if end - out != total:
        raise ValueError("a message's size does not match its frames")
    return result


def encode_get_ok(
    uint16_t channel,
    uint64_t tag,
    bint redelivered,
    Message message not None,
    uint32_t message_count,
    uint32_t frame_max,
):
    """basic.get-ok and the message's content."""
    cdef uint8_t head[9]
    cdef uint8_t count[4]
    put64(head, tag)
    head[8] = redelivered
    put32(count, message_count)
    return _with_content(
        channel,
        71,
        PyBytes_FromStringAndSize(<char *>head, 9)
        + _names(message)
        + PyBytes_FromStringAndSize(<char *>count, 4),
        message,
        frame_max,
    )


def encode_return(
    uint16_t channel, uint16_t code, str text not None, Message message not None, uint32_t frame_max
):
    """basic.return and the message's content."""
    cdef bytes reason = text.encode()
    return _with_content(
        channel,
        50,
        bytes((code >> 8, code & 255, len(reason))) + reason + _names(message),
        message,
        frame_max,
    )


cdef bytes _settle(uint16_t channel, uint16_t method, uint64_t tag, uint8_t bits):
    cdef uint8_t out[21]
    out[0] = 1
    put16(out + 1, channel)
    put32(out + 3, 13)
    put32(out + 7, 60 << 16 | method)
    put64(out + 11, tag)
    out[19] = bits
    out[20] = FRAME_END
    return PyBytes_FromStringAndSize(<char *>out, 21)


def encode_ack(uint16_t channel, uint64_t tag, bint multiple):
    """basic.ack as the broker confirms with it."""
    return _settle(channel, 80, tag, multiple)


def encode_nack(uint16_t channel, uint64_t tag, bint multiple, bint requeue):
    """basic.nack as the broker refuses with it."""
    return _settle(channel, 120, tag, multiple | requeue << 1)
