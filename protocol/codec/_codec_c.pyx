# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
# cython: cdivision=True, auto_pickle=False
"""The compiled hot codec: octets to runs, runs to deliveries.

The twin of _codec_py (same names, same events, one contract suite); the package chooses. Imports nothing of
ours. It is one module, so that its parts call each other as C does; each part is a file of its own beside its
interpreted twin (_message_c.pxi beside _message_py.py).

State: one HotCodec per connection owns the octets of at most one incomplete frame or publish and the
last publish's address. Called by ServerConnection (feed) and, through the package, by the broker.

Invariants: no pointer outlives the call that took it, but for that to the room of a large content while it is lent,
which stays where it is meanwhile; no event refers to the read buffer; every read is preceded by a test against
the end of the buffer; Message holds bytes and C integers only, so that the collector never tracks a queued
message.

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
from cpython.mem cimport PyMem_Free, PyMem_Malloc
from cpython.ref cimport PyObject
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memchr, memcmp, memcpy

NAME = "compiled"

include "_constants_c.pxi"
include "_octets_c.pxi"
include "_message_c.pxi"
include "_run_c.pxi"
include "_large_c.pxi"
include "_address_c.pxi"
include "_header_c.pxi"
include "_death_c.pxi"
include "_fields_c.pxi"
include "_hash_c.pxi"
include "_ring_c.pxi"
include "_sheaf_c.pxi"

cdef enum:
    # Outcomes of a step that may find its octets missing or unusual.
    WAIT = 0
    SLOW = -1


@cython.final
cdef class HotCodec:
    """Cuts one connection's octets into events."""

    cdef public uint32_t frame_max
    cdef public int64_t message_max
    cdef bytearray _tail
    cdef LargeContent _large
    cdef Py_ssize_t _need
    cdef bint _is_broken
    cdef PublishRun _run
    cdef AckRun _acks
    cdef bytes _address
    cdef uint16_t _channel
    cdef uint16_t _slow_channel
    cdef int64_t _slow_left

    def __init__(self, uint32_t frame_max):
        self.frame_max = frame_max
        # Up to so many octets of body a large publish is put together here; beyond it, by whoever takes its Frames.
        self.message_max = 0
        self._tail = bytearray()
        self._need = 0
        self._is_broken = False
        self._address = b""
        self._channel = 0
        # The channel of the last publish that went out as Frames, until its content is whole; how much of the body
        # is to come, -1 while the header is.
        self._slow_channel = 0
        self._slow_left = -1

    @property
    def buffered(self):
        """Octets kept for a frame or a publish that is not complete."""
        return len(self._tail) + (self._large.at if self._large is not None else 0)

    def feed(self, bytes data not None):
        """Take octets; return the events that they complete. After a BadFrame everything is ignored."""
        cdef list events = []
        cdef Py_ssize_t pos = 0
        if self._is_broken:
            return events
        if self._large is not None:
            if not self._large.take(
                <const uint8_t *>PyBytes_AS_STRING(data), PyBytes_GET_SIZE(data), 0, False
            ):
                data = self._unwind_large(events, data[self._large.used :])
            elif self._large.left:
                return events
            else:
                pos = self._large.used
                self._finish_large(events)
        elif PyByteArray_GET_SIZE(self._tail):
            self._tail += data
            if PyByteArray_GET_SIZE(self._tail) < self._need:
                return events
            data = bytes(self._tail)
            self._tail.clear()
        self._take(data, pos, events)
        return events

    def room(self, Py_ssize_t most):
        """Where the next octets of the large content under way belong, at most so many; None if there is none.

        Whoever writes there lets go of it, and says by `filled` how much it was, before anything else is fed.
        """
        return self._large.lend(most) if self._large is not None else None

    def filled(self, Py_ssize_t count):
        """So many octets were written to the room that was given last; as `feed` of them."""
        cdef list events = []
        cdef LargeContent large = self._large
        cdef const uint8_t *data
        cdef bytes rest = b""
        cdef bint is_sound
        if large is None or not 0 <= count <= large.lent:
            raise ValueError("there is no room for so many octets")
        data = <const uint8_t *>PyBytes_AS_STRING(<object>large.raw) + large.at
        large.lent = 0
        is_sound = large.take(data, count, 0, True)
        if is_sound and large.left:
            return events
        if large.used < count:
            rest = PyBytes_FromStringAndSize(<const char *>data + large.used, count - large.used)
        if is_sound:
            self._finish_large(events)
        else:
            rest = self._unwind_large(events, rest)
        self._take(rest, 0, events)
        return events

    cdef int _take(self, bytes data, Py_ssize_t pos, list events) except -1:
        """Parse what is whole, keep the rest."""
        cdef Py_ssize_t size = PyBytes_GET_SIZE(data)
        pos = self._parse(<const uint8_t *>PyBytes_AS_STRING(data), size, pos, events)
        self._run = None
        self._acks = None
        if pos < size:
            self._tail += data[pos:] if pos else data
        return 0

    cdef Py_ssize_t _parse(
        self, const uint8_t *data, Py_ssize_t size, Py_ssize_t pos, list events
    ) except -2:
        """Parse what is whole from `pos` on; return the offset of the rest, with _need set to what it must grow to."""
        cdef Py_ssize_t end, after
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
                    self._slow_left = -1
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
            elif channel and channel == self._slow_channel:
                self._follow(data + pos, length)
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

    cdef int _follow(self, const uint8_t *frame, uint32_t length) noexcept:
        """A frame of the channel whose content is put together elsewhere: with the last one, it is as it was before."""
        if frame[0] == 2 and length >= 12 and self._slow_left < 0:
            self._slow_left = <int64_t>u64(frame + 11)
        elif frame[0] == 3 and self._slow_left > 0:
            self._slow_left -= length
        else:
            return 0
        if self._slow_left == 0:
            self._slow_channel = 0
        return 0

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
        cdef LargeContent large
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
                if body_size > WAIT_BODY_MAX and body_size <= <uint64_t>self.message_max:
                    if channel == self._slow_channel:
                        return SLOW
                    if address is None:
                        address = _remember_address(names, names_size)
                    large = self._begin_large(data, pos, header, at, size)
                    large.address = address
                    large.size = <int64_t>body_size
                    large.flags = flags
                    large.largest = largest
                    large.left = left
                    if not large.take(data, size, at, False):
                        return SLOW
                    self._large = large
                    return size
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

    cdef LargeContent _begin_large(
        self, const uint8_t *data, Py_ssize_t pos, Py_ssize_t header, Py_ssize_t at, Py_ssize_t size
    ):
        """A content whose whole frames are data[header:at], with more to come."""
        cdef LargeContent large = LargeContent.__new__(LargeContent)
        cdef Py_ssize_t first = header + 8 + <Py_ssize_t>u32(data + header + 3)
        cdef uint64_t body = u64(data + header + 11), frame = 0
        if size - first >= 7:
            frame = u32(data + first + 3)
        large.method = PyBytes_FromStringAndSize(<const char *>data + pos + 7, header - pos - 8)
        large.channel = u16(data + pos + 1)
        large.frame_max = self.frame_max
        large.expected = first - header + <Py_ssize_t>body
        if frame:
            large.expected += 8 * <Py_ssize_t>((body + frame - 1) // frame)
        large.begin(data + header, at - header)
        return large

    cdef bytes _unwind_large(self, list events, bytes rest):
        """What came behind its beginning is not of it: append that as frames; what is to be parsed behind them."""
        cdef LargeContent large = self._large
        self._large = None
        self._slow_channel = large.channel
        self._slow_left = <int64_t>large.left
        return large.unwind(events) + rest

    cdef int _finish_large(self, list events) except -1:
        """The content that was under way is a message."""
        cdef LargeContent large = self._large
        cdef Message message = Message.__new__(Message)
        cdef PublishRun run
        self._large = None
        self._address = large.address
        run = self._open_run(large.channel, large.flags, events)
        message.address = large.address
        message.raw = large.whole()
        message.size = large.size
        message.flags = large.flags
        message.channel = large.channel
        message.frame_max = large.largest
        message.handle = -1
        PyList_Append(run.messages, message)
        run.size = large.size
        run.flags = large.flags
        self._run = None
        return 0

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
