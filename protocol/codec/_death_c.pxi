# What dead-lettering does to whole runs without decoding a header: the twin of _death_py.


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
    if length < 14 or length > PyBytes_GET_SIZE(message.raw) - 8:
        return False
    if length + 8 + DEATH_MAX > header_max:
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
    cdef uint32_t flags
    cdef uint8_t *out
    cdef Message dead
    if total < 22:
        raise ValueError("content shorter than a header frame")
    flags = u16(raw + 19)
    if flags & (1 << 15):
        at += 1 + <Py_ssize_t>raw[at]
    if flags & (1 << 14) and at < total:
        at += 1 + <Py_ssize_t>raw[at]
    rest = at
    if flags & PROP_HEADERS:
        if total - at < 4:
            raise ValueError("no headers where they should be")
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
