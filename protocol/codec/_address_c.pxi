# Addresses: exchange and routing key as a publish has them, each behind its length octet. The twin of _address_py.
#
# State: the addresses that are in use, so that messages share them and need not be checked again. One for the process,
# since publishers use each other's: a place for each hash, of which the last address has it.

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


def split_address(bytes address not None):
    """Exchange and routing key of an address."""
    cdef Py_ssize_t key = 1 + address[0]
    return address[1:key], address[key + 1 : key + 1 + address[key]]


def join_address(bytes exchange not None, bytes routing_key not None):
    """An address: both names, each behind its length octet."""
    return b"".join(
        (bytes((len(exchange),)), exchange, bytes((len(routing_key),)), routing_key)
    )
