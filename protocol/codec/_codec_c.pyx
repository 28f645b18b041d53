# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
# cython: cdivision=True, auto_pickle=False
"""The compiled hot codec: octets to runs, runs to deliveries.

The twin of _codec_py (same names, same events, one contract suite); codec.py chooses. Imports nothing of
ours, so the numbers of constants.py stand here again; the contract suite compares them.

State: one HotCodec per connection owns the octets of at most one incomplete frame or small publish and
the last publish's address. Called by ServerConnection (feed) and, through codec.py, by the broker.

Invariants: no pointer outlives the call that took it and no event refers to the read buffer; every read
is preceded by a test against the end of the buffer; Message holds bytes and C integers only, so that the
collector never tracks a queued message.

Source: AMQP 0-9-1 sections 4.2.3 and 4.2.6; frame-size slack of 8 octets as in RabbitMQ's rabbit_reader.
"""

include "build_stamp.pxi"

cimport cython
from cpython.bytes cimport (
    PyBytes_AS_STRING,
    PyBytes_FromStringAndSize,
    PyBytes_GET_SIZE,
)
from cpython.bytearray cimport PyByteArray_AS_STRING, PyByteArray_GET_SIZE
from cpython.list cimport PyList_Append, PyList_GET_ITEM, PyList_GET_SIZE
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memchr, memcmp, memcpy

NAME = "compiled"

cdef enum:
    FRAME_END = 0xCE
    PROP_HEADERS = 1 << 13
    PROP_DELIVERY_MODE = 1 << 12
    PROP_PRIORITY = 1 << 11
    PROP_TIMESTAMP = 1 << 6
    PROP_UNKNOWN = 3
    PERSISTENT = 1 << 16
    MANDATORY = 1 << 17
    IMMEDIATE = 1 << 18
    MAYBE_CC = 1 << 19
    HIDDEN = 1 << 21
    RUN_FLAGS = (1 << 16) | (1 << 17) | (1 << 18)
    WAIT_BODY_MAX = 32 * 1024
    WAIT_BUFFER_MAX = 64 * 1024
    WAIT_FRAMES_MAX = 8
    TABLE_DEPTH_MAX = 128
    TABLE_SIZE_MAX = 128 * 1024

    # Outcomes of a step that may find its octets missing or unusual.
    WAIT = 0
    SLOW = -1

CONSTANTS = {
    "FRAME_END": FRAME_END,
    "PROP_HEADERS": PROP_HEADERS,
    "PROP_DELIVERY_MODE": PROP_DELIVERY_MODE,
    "PROP_PRIORITY": PROP_PRIORITY,
    "PROP_TIMESTAMP": PROP_TIMESTAMP,
    "PROP_UNKNOWN": PROP_UNKNOWN,
    "PERSISTENT": PERSISTENT,
    "MANDATORY": MANDATORY,
    "IMMEDIATE": IMMEDIATE,
    "MAYBE_CC": MAYBE_CC,
    "HIDDEN": HIDDEN,
    "WAIT_BODY_MAX": WAIT_BODY_MAX,
    "WAIT_BUFFER_MAX": WAIT_BUFFER_MAX,
    "WAIT_FRAMES_MAX": WAIT_FRAMES_MAX,
    "TABLE_DEPTH_MAX": TABLE_DEPTH_MAX,
    "TABLE_SIZE_MAX": TABLE_SIZE_MAX,
}


cdef extern from *:
    """
    #include <stdint.h>
    #include <string.h>
    static inline uint16_t burrow_u16(const uint8_t *p) {
        return (uint16_t)((p[0] << 8) | p[1]);
    }
    static inline uint32_t burrow_u32(const uint8_t *p) {
        return ((uint32_t)p[0] << 24) | ((uint32_t)p[1] << 16) | ((uint32_t)p[2] << 8) | p[3];
    }
    static inline uint64_t burrow_u64(const uint8_t *p) {
        return ((uint64_t)burrow_u32(p) << 32) | burrow_u32(p + 4);
    }
    static inline void burrow_put16(uint8_t *p, uint32_t v) {
        p[0] = (uint8_t)(v >> 8); p[1] = (uint8_t)v;
    }
    static inline void burrow_put32(uint8_t *p, uint32_t v) {
        burrow_put16(p, v >> 16); burrow_put16(p + 2, v);
    }
    static inline void burrow_put64(uint8_t *p, uint64_t v) {
        burrow_put32(p, (uint32_t)(v >> 32)); burrow_put32(p + 4, (uint32_t)v);
    }
    """
    uint16_t u16 "burrow_u16"(const uint8_t *p) nogil
    uint32_t u32 "burrow_u32"(const uint8_t *p) nogil
    uint64_t u64 "burrow_u64"(const uint8_t *p) nogil
    void put16 "burrow_put16"(uint8_t *p, uint32_t value) nogil
    void put32 "burrow_put32"(uint8_t *p, uint32_t value) nogil
    void put64 "burrow_put64"(uint8_t *p, uint64_t value) nogil


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


@cython.final
cdef class PublishRun:
    """Consecutive publishes on one channel with equal address and PERSISTENT, MANDATORY, IMMEDIATE bits."""

    cdef public object channel
    cdef public bytes address
    cdef public uint32_t flags
    cdef public list messages
    cdef public int64_t size

    def __init__(self, channel, bytes address, uint32_t flags, list messages, int64_t size):
        self.channel = channel
        self.address = address
        self.flags = flags
        self.messages = messages
        self.size = size


@cython.final
cdef class AckRun:
    """Consecutive single acks, or one multiple ack (first_tag == last_tag)."""

    cdef public uint64_t first_tag
    cdef public uint64_t last_tag
    cdef public uint16_t channel
    cdef public bint multiple

    def __init__(self, uint16_t channel, uint64_t first_tag, uint64_t last_tag, bint multiple):
        self.channel = channel
        self.first_tag = first_tag
        self.last_tag = last_tag
        self.multiple = multiple


@cython.final
cdef class Frame:
    """Any other whole frame, its end octet checked."""

    cdef public bytes payload
    cdef public uint16_t channel
    cdef public uint8_t type

    def __init__(self, uint8_t frame_type, uint16_t channel, bytes payload):
        self.type = frame_type
        self.channel = channel
        self.payload = payload


@cython.final
cdef class BadFrame:
    """The last event there is: a frame larger than frame_max (its payload unread) or with a bad end."""

    cdef public bytes payload
    cdef public uint32_t value
    cdef public uint16_t channel
    cdef public uint8_t type
    cdef public bint too_large

    def __init__(
        self, uint8_t frame_type, uint16_t channel, bytes payload, bint too_large, uint32_t value
    ):
        self.type = frame_type
        self.channel = channel
        self.payload = payload
        self.too_large = too_large
        self.value = value


@cython.final
cdef class HotCodec:
    """Cuts one connection's octets into events."""

    cdef public uint32_t frame_max
    cdef bytearray _tail
    cdef Py_ssize_t _need
    cdef bint _is_broken
    cdef PublishRun _run
    cdef AckRun _acks
    cdef bytes _address
    cdef uint16_t _channel
    cdef uint16_t _slow_channel

    def __init__(self, uint32_t frame_max):
        self.frame_max = frame_max
        self._tail = bytearray()
        self._need = 0
        self._is_broken = False
        self._address = b""
        self._channel = 0
        # The channel of the last publish that went out as Frames, until one makes a run there again.
        self._slow_channel = 0

    @property
    def buffered(self):
        """Octets kept for a frame or a small publish that is not complete."""
        return len(self._tail)

    def feed(self, bytes data not None):
        """Take octets; return the events that they complete. After a BadFrame everything is ignored."""
        cdef list events = []
        cdef Py_ssize_t size, pos
        if self._is_broken:
            return events
        if PyByteArray_GET_SIZE(self._tail):
            self._tail += data
            if PyByteArray_GET_SIZE(self._tail) < self._need:
                return events
            data = bytes(self._tail)
            self._tail.clear()
        self._run = None
        self._acks = None
        size = PyBytes_GET_SIZE(data)
        pos = self._parse(<const uint8_t *>PyBytes_AS_STRING(data), size, events)
        self._run = None
        self._acks = None
        if pos < size:
            self._tail += data[pos:] if pos else data
        return events

    cdef Py_ssize_t _parse(self, const uint8_t *data, Py_ssize_t size, list events) except -2:
        """Parse what is whole; return the offset of the rest, with _need set to what it must grow to."""
        cdef Py_ssize_t pos = 0, end, after
        cdef uint32_t length, ids
        cdef uint16_t channel
        while True:
            if size - pos < 7:
                self._need = 7
                return pos
            length = u32(data + pos + 3)
            if length > self.frame_max:
                self._is_broken = True
                events.append(BadFrame(data[pos], u16(data + pos + 1), b"", True, length))
                return size
            end = pos + 8 + <Py_ssize_t>length
            if end > size:
                self._need = end - pos
                return pos
            channel = u16(data + pos + 1)
            if data[end - 1] != FRAME_END:
                self._is_broken = True
                events.append(
                    BadFrame(
                        data[pos],
                        channel,
                        PyBytes_FromStringAndSize(<const char *>data + pos + 7, length),
                        False,
                        data[end - 1],
                    )
                )
                return size
            if data[pos] == 1 and length >= 4 and channel:
                ids = u32(data + pos + 7)
                if ids == (60 << 16 | 40):
                    after = self._publish(data, size, pos, end, events)
                    if after > 0:
                        pos = after
                        continue
                    # Behind a content that is being assembled elsewhere this one may be an error that
                    # the peer waits to hear of.
                    if after == WAIT and channel != self._slow_channel:
                        return pos
                    self._slow_channel = channel
                elif ids == (60 << 16 | 80) and length == 13:
                    self._acknowledge(u64(data + pos + 11), data[pos + 19], channel, events)
                    pos = end
                    continue
            self._run = None
            self._acks = None
            events.append(
                Frame(
                    data[pos],
                    channel,
                    PyBytes_FromStringAndSize(<const char *>data + pos + 7, length),
                )
            )
            pos = end

    cdef int _acknowledge(
        self, uint64_t tag, uint8_t bits, uint16_t channel, list events
    ) except -2:
        cdef AckRun run = self._acks
        if (
            not bits & 1
            and run is not None
            and run.channel == channel
            and not run.multiple
            and run.last_tag + 1 == tag
            and tag
        ):
            run.last_tag = tag
            return 0
        self._run = None
        run = AckRun.__new__(AckRun)
        run.channel = channel
        run.first_tag = tag
        run.last_tag = tag
        run.multiple = bits & 1
        self._acks = run
        events.append(run)
        return 0

    cdef int _wait(self, Py_ssize_t need) noexcept:
        if need > WAIT_BUFFER_MAX:
            return SLOW
        self._need = need
        return WAIT

    cdef Py_ssize_t _publish(
        self, const uint8_t *data, Py_ssize_t size, Py_ssize_t pos, Py_ssize_t header, list events
    ) except -2:
        """Take one publish whose method frame is data[pos:header]; return the offset after it.

        WAIT when it is small and incomplete, SLOW when it must go out as Frames.
        """
        cdef const uint8_t *names = data + pos + 13
        cdef Py_ssize_t names_size = header - 2 - (pos + 13)
        cdef Py_ssize_t body, at, end
        cdef uint32_t length, largest, frame_length, flags
        cdef uint64_t body_size, left
        cdef int count = 0
        cdef int64_t walked
        cdef uint16_t channel
        cdef uint8_t bits
        cdef Message message
        cdef PublishRun run
        cdef bint same_address
        if header - pos < 17:
            return SLOW
        same_address = names_size == PyBytes_GET_SIZE(self._address) and not memcmp(
            names, PyBytes_AS_STRING(self._address), names_size
        )
        if not same_address and not _is_sound(names, names_size):
            return SLOW
        if size < header + 7:
            return self._wait(header + 7 - pos)
        if data[header] != 2 or u16(data + header + 1) != u16(data + pos + 1):
            return SLOW
        length = u32(data + header + 3)
        if length < 14 or length > self.frame_max:
            return SLOW
        body = header + 8 + <Py_ssize_t>length
        if body > size:
            return self._wait(body - pos)
        if (
            u32(data + header + 7) != 60 << 16
            or data[body - 1] != FRAME_END
            or data[header + 20] & PROP_UNKNOWN
        ):
            return SLOW
        flags = u16(data + header + 19)
        walked = _walk_properties(data + header + 21, body - 1 - (header + 21), flags)
        if walked < 0:
            return SLOW
        flags = <uint32_t>walked
        bits = data[header - 2]
        if bits & 1:
            flags |= MANDATORY
        if bits & 2:
            flags |= IMMEDIATE
        channel = u16(data + pos + 1)
        body_size = left = u64(data + header + 11)
        largest = length + 8
        frame_length = 0
        at = body
        while left:
            if size - at < 7:
                end = at + 7
            else:
                frame_length = u32(data + at + 3)
                if (
                    data[at] != 3
                    or u16(data + at + 1) != channel
                    or frame_length == 0
                    or frame_length > left
                    or frame_length > self.frame_max
                ):
                    return SLOW
                end = at + 8 + <Py_ssize_t>frame_length
            if end > size:
                if body_size > WAIT_BODY_MAX or count > WAIT_FRAMES_MAX:
                    return SLOW
                return self._wait(end - pos)
            if data[end - 1] != FRAME_END:
                return SLOW
            if frame_length + 8 > largest:
                largest = frame_length + 8
            left -= frame_length
            count += 1
            at = end
        if channel == self._slow_channel:
            self._slow_channel = 0
        message = Message.__new__(Message)
        run = self._run
        if run is None or not same_address or channel != self._channel:
            if not same_address:
                self._address = PyBytes_FromStringAndSize(<const char *>names, names_size)
            run = self._open_run(channel, flags, events)
        elif (run.flags ^ flags) & RUN_FLAGS:
            run = self._open_run(channel, flags, events)
        message.address = self._address
        message.raw = PyBytes_FromStringAndSize(<const char *>data + header, at - header)
        message.size = <int64_t>body_size
        message.flags = flags
        message.channel = channel
        message.frame_max = largest
        message.handle = -1
        PyList_Append(run.messages, message)
        run.flags |= flags
        run.size += <int64_t>body_size
        return at

    cdef PublishRun _open_run(self, uint16_t channel, uint32_t flags, list events):
        cdef PublishRun run = PublishRun.__new__(PublishRun)
        run.channel = channel
        run.address = self._address
        run.flags = flags
        run.messages = []
        run.size = 0
        self._channel = channel
        self._run = run
        self._acks = None
        events.append(run)
        return run


cdef bint _is_sound(const uint8_t *names, Py_ssize_t size) except -1:
    """Whether two short strings fill the octets exactly and are UTF-8."""
    cdef Py_ssize_t key = 1 + <Py_ssize_t>names[0], at
    cdef uint8_t seen = 0
    if key >= size or key + 1 + <Py_ssize_t>names[key] != size:
        return False
    for at in range(1, key):
        seen |= names[at]
    for at in range(key + 1, size):
        seen |= names[at]
    if seen < 128:
        return True
    try:
        PyUnicode_DecodeUTF8(<char *>names + 1, key - 1, NULL)
        PyUnicode_DecodeUTF8(<char *>names + key + 1, size - key - 1, NULL)
    except UnicodeDecodeError:
        return False
    return True


cdef bint _has_cc(const uint8_t *octets, Py_ssize_t size) noexcept nogil:
    """Whether the octets hold a short string CC or BCC."""
    cdef const uint8_t *at = octets
    cdef const uint8_t *end = octets + size
    while True:
        # 'C' is rarer in headers than the length octets 2 and 3.
        at = <const uint8_t *>memchr(at, c'C', end - at)
        if at == NULL:
            return False
        if at + 1 < end and at[1] == c'C':
            if at - octets >= 1 and (at - 1)[0] == 2:
                return True
            if at - octets >= 2 and (at - 1)[0] == c'B' and (at - 2)[0] == 3:
                return True
        at += 1


cdef int64_t _walk_properties(
    const uint8_t *octets, Py_ssize_t size, uint32_t flags
) noexcept nogil:
    """Return the message flags for a flag word and its properties, -1 when they are malformed."""
    cdef Py_ssize_t pos = 0
    cdef uint32_t left = flags, prop
    cdef int64_t result = flags
    while left:
        prop = 1 << (31 - __builtin_clz(left))
        left ^= prop
        if pos >= size:
            return -1
        if prop == PROP_HEADERS:
            pos = _skip_table(octets, pos, size, 1, True)
            if pos < 0:
                return -1
        elif prop == PROP_DELIVERY_MODE:
            if octets[pos] == 2:
                result |= PERSISTENT
            pos += 1
        elif prop == PROP_PRIORITY:
            pos += 1
        elif prop == PROP_TIMESTAMP:
            pos += 8
        else:
            pos += 1 + <Py_ssize_t>octets[pos]
        if pos > size:
            return -1
    if pos != size:
        return -1
    if flags & PROP_HEADERS and _has_cc(octets, size):
        result |= MAYBE_CC
    return result


cdef extern from *:
    int __builtin_clz(unsigned int value) nogil


cdef Py_ssize_t _skip_table(
    const uint8_t *octets, Py_ssize_t pos, Py_ssize_t limit, int depth, bint is_table
) noexcept nogil:
    """Return the offset after the table or array at pos, -1 when it is malformed or beyond the limits.

    Calls itself at most TABLE_DEPTH_MAX deep.
    """
    cdef Py_ssize_t end
    cdef uint32_t size
    cdef uint8_t tag
    if depth > TABLE_DEPTH_MAX or limit - pos < 4:
        return -1
    size = u32(octets + pos)
    pos += 4
    if size > TABLE_SIZE_MAX or <Py_ssize_t>size > limit - pos:
        return -1
    end = pos + <Py_ssize_t>size
    while pos < end:
        if is_table:
            pos += 1 + <Py_ssize_t>octets[pos]
            if pos >= end:
                return -1
        tag = octets[pos]
        pos += 1
        if tag == c'S' or tag == c'x':
            if end - pos < 4:
                return -1
            size = u32(octets + pos)
            if <Py_ssize_t>size > end - pos - 4:
                return -1
            pos += 4 + <Py_ssize_t>size
        elif tag == c'I' or tag == c'i' or tag == c'f':
            pos += 4
        elif tag == c'l' or tag == c'L' or tag == c'T' or tag == c'd':
            pos += 8
        elif tag == c't' or tag == c'b' or tag == c'B':
            pos += 1
        elif tag == c's' or tag == c'u':
            pos += 2
        elif tag == c'F' or tag == c'A':
            pos = _skip_table(octets, pos, end, depth + 1, tag == c'F')
            if pos < 0:
                return -1
        elif tag == c'D':
            pos += 5
        elif tag != c'V':
            return -1
        if pos > end:
            return -1
    return end


def header_flags(bytes payload not None):
    """The message flags that a content header's payload gives, -1 when its properties are malformed."""
    cdef const uint8_t *data = <const uint8_t *>PyBytes_AS_STRING(payload)
    cdef Py_ssize_t size = PyBytes_GET_SIZE(payload)
    if size < 14 or data[13] & PROP_UNKNOWN:
        return -1
    return _walk_properties(data + 14, size - 14, u16(data + 12))


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


def split_address(bytes address not None):
    """Exchange and routing key of an address."""
    cdef Py_ssize_t key = 1 + address[0]
    return address[1:key], address[key + 1 : key + 1 + address[key]]


def join_address(bytes exchange not None, bytes routing_key not None):
    """An address: both names, each behind its length octet."""
    return b"".join(
        (bytes((len(exchange),)), exchange, bytes((len(routing_key),)), routing_key)
    )
