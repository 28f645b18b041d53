# The properties of a content header, stepped over without decoding them: the twin of _header_py.
#
# Also what is asked of whole runs, without decoding a header for one octet: deadlines, priorities, whose they are.


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


def are_of_user(list messages not None, bytes name not None):
    """Whether each of these that has a `user_id` has this one."""
    cdef Message message
    cdef const uint8_t *text
    cdef Py_ssize_t size = PyBytes_GET_SIZE(name)
    for item in messages:
        message = <Message?>item
        if message.flags & PROP_USER_ID:
            text = _find(message, PROP_USER_ID)
            if text == NULL or text[0] != size or memcmp(text + 1, PyBytes_AS_STRING(name), size):
                return False
    return True


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
