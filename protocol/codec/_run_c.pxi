# What the compiled codec cuts octets into: the twin of _run_py.


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
