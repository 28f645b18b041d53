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
from cpython.dict cimport PyDict_GetItemWithError
from cpython.list cimport PyList_Append, PyList_GET_ITEM, PyList_GET_SIZE
from cpython.ref cimport PyObject
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memchr, memcmp, memcpy

NAME = "compiled"

cdef enum:
    FRAME_END = 0xCE
    METHOD_ACK = 80
    METHOD_REJECT = 90
    METHOD_NACK = 120
    PROP_HEADERS = 1 << 13
    PROP_DELIVERY_MODE = 1 << 12
    PROP_PRIORITY = 1 << 11
    PROP_REPLY_TO = 1 << 9
    PROP_EXPIRATION = 1 << 8
    PROP_TIMESTAMP = 1 << 6
    PROP_UNKNOWN = 3
    PERSISTENT = 1 << 16
    MANDATORY = 1 << 17
    IMMEDIATE = 1 << 18
    MAYBE_CC = 1 << 19
    ON_DISK = 1 << 20
    HIDDEN = 1 << 21
    DEATH_MAX = 4096
    NEEDS_LOOK = 1 << 22
    EXPIRATION_DIGITS = 12
    RUN_FLAGS = (1 << 16) | (1 << 17) | (1 << 18)
    WAIT_BODY_MAX = 32 * 1024
    WAIT_BUFFER_MAX = 64 * 1024
    WAIT_FRAMES_MAX = 8
    TABLE_DEPTH_MAX = 128
    TABLE_SIZE_MAX = 128 * 1024
    KNOWN_ADDRESSES = 4096

    # Outcomes of a step that may find its octets missing or unusual.
    WAIT = 0
    SLOW = -1

cdef int64_t EXPIRATION_MAX_MS = 315360000000

CONSTANTS = {
    "FRAME_END": FRAME_END,
    "METHOD_ACK": METHOD_ACK,
    "METHOD_REJECT": METHOD_REJECT,
    "METHOD_NACK": METHOD_NACK,
    "PROP_HEADERS": PROP_HEADERS,
    "PROP_DELIVERY_MODE": PROP_DELIVERY_MODE,
    "PROP_PRIORITY": PROP_PRIORITY,
    "PROP_REPLY_TO": PROP_REPLY_TO,
    "PROP_EXPIRATION": PROP_EXPIRATION,
    "PROP_TIMESTAMP": PROP_TIMESTAMP,
    "PROP_UNKNOWN": PROP_UNKNOWN,
    "PERSISTENT": PERSISTENT,
    "MANDATORY": MANDATORY,
    "IMMEDIATE": IMMEDIATE,
    "MAYBE_CC": MAYBE_CC,
    "ON_DISK": ON_DISK,
    "HIDDEN": HIDDEN,
    "DEATH_MAX": DEATH_MAX,
    "NEEDS_LOOK": NEEDS_LOOK,
    "EXPIRATION_MAX_MS": EXPIRATION_MAX_MS,
    "WAIT_BODY_MAX": WAIT_BODY_MAX,
    "WAIT_BUFFER_MAX": WAIT_BUFFER_MAX,
    "WAIT_FRAMES_MAX": WAIT_FRAMES_MAX,
    "TABLE_DEPTH_MAX": TABLE_DEPTH_MAX,
    "TABLE_SIZE_MAX": TABLE_SIZE_MAX,
    "KNOWN_ADDRESSES": KNOWN_ADDRESSES,
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
    """Consecutive publishes on one channel with equal PERSISTENT, MANDATORY, IMMEDIATE bits."""

    cdef public object channel
    cdef public bytes address
    cdef public uint32_t flags
    cdef public list messages
    cdef public int64_t size
    cdef public bint is_mixed

    def __init__(
        self,
        channel,
        bytes address,
        uint32_t flags,
        list messages,
        int64_t size,
        bint is_mixed=False,
    ):
        self.channel = channel
        self.address = address
        self.flags = flags
        self.messages = messages
        self.size = size
        self.is_mixed = is_mixed


@cython.final
cdef class AckRun:
    """Consecutive single settlements of one kind, or one that is multiple (first_tag == last_tag).

    `method` is that of basic: ack, nack or reject; `requeue` is False for an ack.
    """

    cdef public uint64_t first_tag
    cdef public uint64_t last_tag
    cdef public uint16_t channel
    cdef public uint8_t method
    cdef public bint multiple
    cdef public bint requeue

    def __init__(
        self,
        uint16_t channel,
        uint64_t first_tag,
        uint64_t last_tag,
        bint multiple,
        uint8_t method=METHOD_ACK,
        bint requeue=False,
    ):
        self.channel = channel
        self.first_tag = first_tag
        self.last_tag = last_tag
        self.multiple = multiple
        self.method = method
        self.requeue = requeue


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
                elif length == 13 and (
                    ids == (60 << 16 | METHOD_ACK)
                    or ids == (60 << 16 | METHOD_REJECT)
                    or ids == (60 << 16 | METHOD_NACK)
                ):
                    self._acknowledge(
                        u64(data + pos + 11), data[pos + 19], channel, ids & 0xFF, events
                    )
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
        self, uint64_t tag, uint8_t bits, uint16_t channel, uint8_t method, list events
    ) except -2:
        cdef AckRun run = self._acks
        cdef bint multiple = method != METHOD_REJECT and bits & 1
        cdef bint requeue = (bits & 1) if method == METHOD_REJECT else 0
        if method == METHOD_NACK:
            requeue = bits & 2
        if (
            not multiple
            and run is not None
            and run.channel == channel
            and run.method == method
            and run.requeue == requeue
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
        run.multiple = multiple
        run.method = method
        run.requeue = requeue
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
        cdef bytes address = self._address
        cdef bint same_address
        if header - pos < 17:
            return SLOW
        same_address = names_size == PyBytes_GET_SIZE(address) and not memcmp(
            names, PyBytes_AS_STRING(address), names_size
        )
        if not same_address:
            address = _known_address(names, names_size)
            if address is None and not _is_sound(names, names_size):
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
        if not same_address:
            if address is None:
                address = _remember_address(names, names_size)
            self._address = address
        run = self._run
        if run is None or channel != self._channel or (run.flags ^ flags) & RUN_FLAGS:
            run = self._open_run(channel, flags, events)
        elif not same_address:
            run.is_mixed = True
        message.address = address
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
        run.is_mixed = False
        self._channel = channel
        self._run = run
        self._acks = None
        events.append(run)
        return run


# Addresses that are in use, so that messages share them and need not be checked again. One for the process, since
# publishers use each other's: a place for each hash, of which the last address has it.
cdef list _known_addresses = [None] * KNOWN_ADDRESSES


cdef inline Py_ssize_t _address_place(const uint8_t *names, Py_ssize_t size) noexcept:
    """The place that an address may have among the known ones."""
    cdef uint64_t word, mixed = <uint64_t>size
    while size >= 8:
        memcpy(&word, names, 8)
        mixed = (mixed ^ word) * <uint64_t>0x9E3779B97F4A7C15
        mixed ^= mixed >> 29
        names += 8
        size -= 8
    word = 0
    memcpy(&word, names, size)
    mixed = (mixed ^ word) * <uint64_t>0x9E3779B97F4A7C15
    return <Py_ssize_t>(mixed >> 52)


cdef bytes _known_address(const uint8_t *names, Py_ssize_t size):
    """The address of these octets if it is known; it is a sound one then."""
    cdef bytes found = <bytes>_known_addresses[_address_place(names, size)]
    if (
        found is None
        or PyBytes_GET_SIZE(found) != size
        or memcmp(PyBytes_AS_STRING(found), names, size)
    ):
        return None
    return found


cdef bytes _remember_address(const uint8_t *names, Py_ssize_t size):
    """The address of these octets, known from now on."""
    cdef bytes address = PyBytes_FromStringAndSize(<const char *>names, size)
    _known_addresses[_address_place(names, size)] = address
    return address


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
    cdef Py_ssize_t pos = 0, at
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
            at = pos + 1
            pos = at + <Py_ssize_t>octets[pos]
            if pos > size:
                return -1
            if prop == PROP_EXPIRATION:
                if pos - at > EXPIRATION_DIGITS or _milliseconds(octets + at, pos - at) < 0:
                    result |= NEEDS_LOOK
            elif prop == PROP_REPLY_TO and pos - at == 21:
                if not memcmp(octets + at, "amq.rabbitmq.reply-to", 21):
                    result |= NEEDS_LOOK
        if pos > size:
            return -1
    if pos != size:
        return -1
    if flags & PROP_HEADERS and _has_cc(octets, size):
        result |= MAYBE_CC
    return result


cdef int64_t _milliseconds(const uint8_t *text, Py_ssize_t size) noexcept nogil:
    """The number that these digits are, -1 when they are none or it is more than any TTL."""
    cdef int64_t value = 0
    cdef Py_ssize_t at
    for at in range(size):
        if text[at] < c'0' or text[at] > c'9':
            return -1
        value = value * 10 + text[at] - c'0'
        if value > EXPIRATION_MAX_MS:
            return -1
    return value if size else -1


cdef const uint8_t *_find(Message message, uint32_t prop) noexcept:
    """The value of a property that the message's flag word announces, NULL when it does not or is cut short."""
    cdef const uint8_t *raw = <const uint8_t *>PyBytes_AS_STRING(message.raw)
    cdef Py_ssize_t size = PyBytes_GET_SIZE(message.raw), pos = 21
    cdef uint32_t left, each
    if size < 22:
        return NULL
    if <Py_ssize_t>u32(raw + 3) + 7 < size:
        size = <Py_ssize_t>u32(raw + 3) + 7
    left = u16(raw + 19)
    if not left & prop:
        return NULL
    left &= ~(2 * prop - 1)
    while left:
        each = 1 << (31 - __builtin_clz(left))
        left ^= each
        if pos >= size:
            return NULL
        if each == PROP_HEADERS:
            if size - pos < 4:
                return NULL
            pos += 4 + <Py_ssize_t>u32(raw + pos)
        elif each == PROP_DELIVERY_MODE or each == PROP_PRIORITY:
            pos += 1
        elif each == PROP_TIMESTAMP:
            pos += 8
        else:
            pos += 1 + <Py_ssize_t>raw[pos]
    if pos >= size or (prop == PROP_EXPIRATION and pos + 1 + <Py_ssize_t>raw[pos] > size):
        return NULL
    return raw + pos


cdef int64_t _expiration(Message message) noexcept:
    """The `expiration` of a message; 0 if it is no TTL, which nobody can have published."""
    cdef const uint8_t *text = _find(message, PROP_EXPIRATION)
    cdef int64_t value
    cdef Py_ssize_t at = 1, end
    if text == NULL:
        return 0
    end = 1 + <Py_ssize_t>text[0]
    if end > 1 and text[1] == c'+':
        at = 2
    value = _milliseconds(text + at, end - at)
    if value >= 0:
        return value
    if at == end:
        return 0
    while at < end:
        if text[at] < c'0' or text[at] > c'9':
            return 0
        at += 1
    return EXPIRATION_MAX_MS


def deadlines(list messages not None, int64_t ttl_ms, int64_t now_ms):
    """When each of these dies by the smaller of `ttl_ms` (-1: none) and its own `expiration`; 0 for never."""
    cdef list found = []
    cdef Message message
    cdef int64_t own
    general = now_ms + ttl_ms if ttl_ms >= 0 else 0
    for item in messages:
        message = <Message?>item
        if message.flags & PROP_EXPIRATION:
            own = _expiration(message)
            if 0 <= ttl_ms < own:
                own = ttl_ms
            PyList_Append(found, now_ms + own)
        else:
            PyList_Append(found, general)
    return found


cdef bint _may_be_first(Message message, uint32_t header_max) noexcept:
    """Whether the message has no deaths, no keys but its own, and room for a death."""
    cdef const uint8_t *raw = <const uint8_t *>PyBytes_AS_STRING(message.raw)
    cdef const uint8_t *at = raw + 21
    cdef const uint8_t *end
    cdef uint32_t length
    if message.flags & (HIDDEN | MAYBE_CC) or message.size < 0:
        return False
    if PyBytes_GET_SIZE(message.raw) < 22:
        return False
    length = u32(raw + 3)
    if length > PyBytes_GET_SIZE(message.raw) - 8 or length + 8 + DEATH_MAX > header_max:
        return False
    end = raw + 7 + length
    while True:
        at = <const uint8_t *>memchr(at, c'-', end - at)
        if at == NULL:
            return True
        if end - at >= 6 and not memcmp(at, "-death", 6):
            return False
        at += 1


def first_deaths(messages not None, uint32_t header_max):
    """Cut messages into stretches whose deaths are alike: (messages, their `expiration`, are they plain).

    Plain ones have an equal address, `expiration` and persistence, no deaths so far, no keys in CC or BCC, and headers
    that leave room below `header_max` octets; others come one by one.
    """
    cdef list found = [], stretch = None
    cdef Message message, last = None
    cdef const uint8_t *text
    cdef bytes expiration = None
    for item in messages:
        message = <Message?>item
        if not _may_be_first(message, header_max):
            found.append(([message], None, False))
            last = None
            continue
        text = _find(message, PROP_EXPIRATION) if message.flags & PROP_EXPIRATION else NULL
        if (
            last is not None
            and (message.address is last.address or message.address == last.address)
            and not (message.flags ^ last.flags) & PERSISTENT
            and _is_text(text, expiration)
        ):
            PyList_Append(stretch, message)
            continue
        expiration = None
        if text != NULL:
            expiration = PyBytes_FromStringAndSize(<const char *>text + 1, text[0])
        stretch = [message]
        last = message
        found.append((stretch, expiration, True))
    return found


cdef bint _is_text(const uint8_t *text, bytes expected) noexcept:
    if text == NULL or expected is None:
        return text == NULL and expected is None
    return text[0] == PyBytes_GET_SIZE(expected) and not memcmp(
        text + 1, PyBytes_AS_STRING(expected), text[0]
    )


def with_fields(list messages not None, bytes address not None, bytes fields not None):
    """The same bodies for another address, with `fields` behind their headers and without `expiration`."""
    cdef list found = []
    for item in messages:
        PyList_Append(found, _with_fields(<Message?>item, address, fields))
    return found


cdef Message _with_fields(Message message, bytes address, bytes fields):
    cdef const uint8_t *raw = <const uint8_t *>PyBytes_AS_STRING(message.raw)
    cdef Py_ssize_t total = PyBytes_GET_SIZE(message.raw), at = 21, rest, gap = 0, size
    cdef Py_ssize_t table = 0, more = PyBytes_GET_SIZE(fields)
    cdef const uint8_t *text = _find(message, PROP_EXPIRATION)
    cdef uint32_t flags = u16(raw + 19)
    cdef uint8_t *out
    cdef Message dead
    if flags & (1 << 15):
        at += 1 + <Py_ssize_t>raw[at]
    if flags & (1 << 14):
        at += 1 + <Py_ssize_t>raw[at]
    rest = at
    if flags & PROP_HEADERS:
        table = <Py_ssize_t>u32(raw + at)
        rest = at + 4 + table
    if text != NULL:
        gap = 1 + <Py_ssize_t>text[0]
    if rest > total or (text != NULL and text - raw < rest):
        raise ValueError("properties that do not fit their header")
    size = at + 4 + table + more + (total - rest) - gap
    dead = Message.__new__(Message)
    dead.raw = PyBytes_FromStringAndSize(NULL, size)
    out = <uint8_t *>PyBytes_AS_STRING(dead.raw)
    memcpy(out, raw, at)
    put32(out + 3, <uint32_t>(u32(raw + 3) + (size - total)))
    put16(out + 19, (flags | PROP_HEADERS) & ~<uint32_t>PROP_EXPIRATION)
    put32(out + at, <uint32_t>(table + more))
    out += at + 4
    if table:
        memcpy(out, raw + at + 4, table)
    memcpy(out + table, PyBytes_AS_STRING(fields), more)
    out += table + more
    if text == NULL:
        memcpy(out, raw + rest, total - rest)
    else:
        memcpy(out, raw + rest, text - raw - rest)
        out += text - raw - rest
        memcpy(out, text + gap, total - (text - raw) - gap)
    dead.address = address
    dead.size = message.size
    dead.flags = (message.flags | PROP_HEADERS) & ~<uint32_t>(PROP_EXPIRATION | ON_DISK | NEEDS_LOOK)
    dead.channel = message.channel
    dead.frame_max = message.frame_max
    total = 8 + <Py_ssize_t>u32(<const uint8_t *>PyBytes_AS_STRING(dead.raw) + 3)
    if total > dead.frame_max:
        dead.frame_max = <uint32_t>total
    dead.handle = -1
    return dead


def by_priority(list messages not None, int top, list due):
    """Cut a run by priority, highest first: (at most `top`, messages, their body octets, their deadlines)."""
    cdef Py_ssize_t index, count = PyList_GET_SIZE(messages)
    cdef Message message
    cdef const uint8_t *octet
    cdef int level
    cdef int64_t[256] sizes
    cdef list parts = [None] * 256, dues = [None] * 256, found = []
    if due is not None and PyList_GET_SIZE(due) != count:
        raise ValueError("a deadline for each message")
    if not 0 <= top < 256:
        raise ValueError("a priority is an octet")
    for index in range(count):
        message = <Message?>messages[index]
        level = 0
        if message.flags & PROP_PRIORITY:
            octet = _find(message, PROP_PRIORITY)
            if octet != NULL:
                level = octet[0] if octet[0] < top else top
        if parts[level] is None:
            parts[level] = []
            sizes[level] = 0
            if due is not None:
                dues[level] = []
        PyList_Append(<list>parts[level], message)
        sizes[level] += message.size
        if due is not None:
            PyList_Append(<list>dues[level], due[index])
    for level in range(top, -1, -1):
        if parts[level] is not None:
            found.append((level, parts[level], sizes[level], dues[level]))
    return found


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


cdef Py_ssize_t _after_value(const uint8_t *octets, Py_ssize_t pos, Py_ssize_t end) noexcept nogil:
    """The offset after the field value at pos, beyond the end when it is malformed."""
    cdef uint8_t tag = octets[pos]
    pos += 1
    if tag == c'S' or tag == c'x' or tag == c'F' or tag == c'A':
        return pos + 4 + <Py_ssize_t>u32(octets + pos) if end - pos >= 4 else end + 1
    if tag == c'I' or tag == c'i' or tag == c'f':
        return pos + 4
    if tag == c'l' or tag == c'L' or tag == c'T' or tag == c'd':
        return pos + 8
    if tag == c't' or tag == c'b' or tag == c'B':
        return pos + 1
    if tag == c's' or tag == c'u':
        return pos + 2
    if tag == c'D':
        return pos + 5
    return pos if tag == c'V' else end + 1


def header_fields(bytes raw not None, frozenset names not None):
    """The octets of those header fields that have one of the names, in their order; `raw` is a message's."""
    return _header_fields(raw, names)


cdef bytes _header_fields(bytes raw, frozenset names):
    cdef const uint8_t *data = <const uint8_t *>PyBytes_AS_STRING(raw)
    cdef Py_ssize_t size = PyBytes_GET_SIZE(raw), pos = 21, start, value, end
    cdef uint32_t flags
    cdef bytes found = b""
    if size < 22:
        raise ValueError("content shorter than a header frame")
    flags = u16(data + 19)
    if not flags & PROP_HEADERS:
        return found
    if flags & 1 << 15:
        pos += 1 + <Py_ssize_t>data[pos]
    if flags & 1 << 14 and pos < size:
        pos += 1 + <Py_ssize_t>data[pos]
    if size - pos < 4:
        raise ValueError("no headers where they should be")
    end = pos + 4 + <Py_ssize_t>u32(data + pos)
    pos += 4
    if end > size:
        raise ValueError("headers longer than their frame")
    while pos < end:
        start = pos
        value = pos + 1 + <Py_ssize_t>data[pos]
        pos = _after_value(data, value, end) if value < end else end + 1
        if pos > end:
            raise ValueError("malformed header field")
        if PyBytes_FromStringAndSize(<const char *>data + start + 1, value - start - 1) in names:
            found += PyBytes_FromStringAndSize(<const char *>data + start, pos - start)
    return found


def look_up_by_headers(
    list messages not None,
    frozenset names not None,
    bint with_address,
    dict routes not None,
    resolve,
):
    """The route of each message by its header fields of these names, behind its address where that counts too."""
    cdef list found = []
    cdef Message message
    cdef bytes octets
    cdef PyObject *known
    cdef Py_ssize_t index
    for index in range(PyList_GET_SIZE(messages)):
        message = <Message?>messages[index]
        octets = _header_fields(message.raw, names)
        if with_address:
            octets = message.address + octets
        known = PyDict_GetItemWithError(routes, octets)
        found.append(<object>known if known != NULL else resolve(octets, message))
    return found


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


@cython.final
cdef class Sheaf:
    """Those messages of a run that go one way, in their order."""

    cdef readonly object target
    cdef readonly list messages
    cdef readonly int64_t size
    cdef readonly uint32_t flags


cdef Sheaf _sheaf(object target):
    cdef Sheaf sheaf = Sheaf.__new__(Sheaf)
    sheaf.target = target
    sheaf.messages = []
    sheaf.size = 0
    sheaf.flags = 0
    return sheaf


cdef inline int _bind_in(Sheaf sheaf, Message message) except -1:
    PyList_Append(sheaf.messages, message)
    sheaf.size += message.size
    sheaf.flags |= message.flags
    return 0


def look_up(list messages not None, dict routes not None, resolve, list found not None):
    """Append the route of each message to `found`: from `routes`, else what `resolve` says of its address."""
    cdef Py_ssize_t index
    cdef bytes address = None
    cdef PyObject *known
    cdef Message message
    route = None
    for index in range(PyList_GET_SIZE(messages)):
        message = <Message?>messages[index]
        if message.address is not address:
            address = message.address
            known = PyDict_GetItemWithError(routes, address)
            route = <object>known if known != NULL else resolve(address)
        PyList_Append(found, route)


def sheaves(list messages not None, list routes not None):
    """The messages by their routes (`routes` has them in the same order), the sheaves in the order of their firsts."""
    cdef list result = []
    cdef dict by_route = {}
    cdef Py_ssize_t index
    cdef Sheaf sheaf = None
    cdef PyObject *known
    if PyList_GET_SIZE(messages) != PyList_GET_SIZE(routes):
        raise ValueError("as many routes as messages are needed")
    for index in range(PyList_GET_SIZE(messages)):
        route = routes[index]
        if sheaf is None or sheaf.target is not route:
            known = PyDict_GetItemWithError(by_route, route)
            if known == NULL:
                sheaf = _sheaf(route)
                by_route[route] = sheaf
                result.append(sheaf)
            else:
                sheaf = <Sheaf>known
        _bind_in(sheaf, <Message?>messages[index])
    return result


def shares(list messages not None, list routes not None):
    """The messages by the queues of their routes, each queue's in their order."""
    cdef dict by_queue = {}
    cdef dict by_route = {}
    cdef Py_ssize_t index
    cdef list of_route = None
    cdef Sheaf sheaf
    cdef Message message
    cdef PyObject *known
    last = None
    if PyList_GET_SIZE(messages) != PyList_GET_SIZE(routes):
        raise ValueError("as many routes as messages are needed")
    for index in range(PyList_GET_SIZE(messages)):
        route = routes[index]
        if of_route is None or route is not last:
            last = route
            known = PyDict_GetItemWithError(by_route, route)
            if known == NULL:
                of_route = []
                for queue in route.queues or ():
                    if queue not in by_queue:
                        by_queue[queue] = _sheaf(queue)
                    of_route.append(by_queue[queue])
                by_route[route] = of_route
            else:
                of_route = <list>known
        message = <Message?>messages[index]
        for sheaf in of_route:
            _bind_in(sheaf, message)
    return list(by_queue.values())


def places(list messages not None, list some not None):
    """The places of `some` of the messages, which stand in both in one order."""
    cdef list result = []
    cdef Py_ssize_t index = 0, place, count = PyList_GET_SIZE(some)
    for place in range(PyList_GET_SIZE(messages)):
        if index == count:
            break
        if PyList_GET_ITEM(messages, place) is PyList_GET_ITEM(some, index):
            result.append(place)
            index += 1
    if index != count:
        raise ValueError("not all of them are among the messages, in that order")
    return result


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
