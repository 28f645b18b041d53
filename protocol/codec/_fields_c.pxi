# Header fields found in a message as they came, without decoding it: the twin of _fields_py.


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
