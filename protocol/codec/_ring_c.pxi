# The buckets of a hash exchange, and the messages of a run sent there: the twin of _ring_py.


@cython.final
cdef class Ring:
    """Buckets one after another, each a target's, and what of a message names one."""

    cdef readonly list targets
    cdef int64_t *_ends
    cdef Py_ssize_t _count
    cdef uint32_t _seed
    cdef uint32_t _missing
    cdef uint32_t _prop
    cdef frozenset _names

    def __cinit__(
        self,
        list ends not None,
        list targets not None,
        uint32_t seed,
        uint32_t missing=0,
        bytes header=None,
        uint32_t prop=0,
    ):
        cdef Py_ssize_t at
        self._count = PyList_GET_SIZE(ends)
        if not self._count or self._count != PyList_GET_SIZE(targets):
            raise ValueError("a ring has as many ends as targets, and one at least")
        self._ends = <int64_t *>PyMem_Malloc(self._count * sizeof(int64_t))
        if self._ends == NULL:
            raise MemoryError()
        for at in range(self._count):
            self._ends[at] = ends[at]
        self.targets = targets
        self._seed = seed
        self._missing = missing
        self._names = None if header is None else frozenset((header,))
        self._prop = prop

    def __dealloc__(self):
        PyMem_Free(self._ends)

    cdef PyObject *_at(self, uint32_t hashed) noexcept:
        """The target whose bucket a hash names: the first whose end is behind it."""
        cdef int64_t bucket = _jump(hashed & 0x7FFFFFF, self._ends[self._count - 1])
        cdef Py_ssize_t low = 0, high = self._count - 1, middle
        while low < high:
            middle = (low + high) // 2
            if self._ends[middle] > bucket:
                high = middle
            else:
                low = middle + 1
        return PyList_GET_ITEM(self.targets, low)

    cdef PyObject *_of_key(self, bytes address) except NULL:
        cdef const uint8_t *octets = <const uint8_t *>PyBytes_AS_STRING(address)
        cdef Py_ssize_t size = PyBytes_GET_SIZE(address), at
        if not size or 2 + <Py_ssize_t>octets[0] > size:
            raise ValueError("no address")
        at = 2 + <Py_ssize_t>octets[0]
        return self._at(_hash_octets(octets + at, size - at, self._seed))

    cdef PyObject *_of_property(self, Message message) noexcept:
        """NULL when the message's frames are cut short."""
        cdef const uint8_t *raw = <const uint8_t *>PyBytes_AS_STRING(message.raw)
        cdef const uint8_t *end = raw + PyBytes_GET_SIZE(message.raw)
        cdef const uint8_t *at
        cdef uint8_t digits[20]
        cdef uint64_t number
        cdef int first = 20
        if end - raw < 22:
            return NULL
        if not u16(raw + 19) & self._prop:
            return self._at(self._missing)
        at = _find(message, self._prop)
        if at == NULL:
            return NULL
        if self._prop == PROP_TIMESTAMP:
            if end - at < 8:
                return NULL
            number = u64(at)
            while True:
                first -= 1
                digits[first] = <uint8_t>(c'0' + number % 10)
                number //= 10
                if not number:
                    break
            return self._at(_hash_octets(digits + first, 20 - first, self._seed))
        if at + 1 + at[0] > end:
            return NULL
        return self._at(_hash_octets(at + 1, at[0], self._seed))

    cdef PyObject *_of_header(self, Message message) except? NULL:
        """NULL when the header is there and is no text, or is there twice."""
        cdef bytes field
        cdef const uint8_t *octets
        cdef Py_ssize_t size, at
        if not u16(<const uint8_t *>PyBytes_AS_STRING(message.raw) + 19) & PROP_HEADERS:
            return self._at(self._missing)
        field = _header_fields(message.raw, self._names)
        size = PyBytes_GET_SIZE(field)
        if not size:
            return self._at(self._missing)
        octets = <const uint8_t *>PyBytes_AS_STRING(field)
        at = 1 + <Py_ssize_t>octets[0]
        if octets[at] != c'S' or at + 5 + <Py_ssize_t>u32(octets + at + 1) != size:
            return NULL
        return self._at(_hash_octets(octets + at + 5, size - at - 5, self._seed))

    cdef PyObject *_of_message(self, Message message) except? NULL:
        if PyBytes_GET_SIZE(message.raw) < 22:
            raise ValueError("content shorter than a header frame")
        return self._of_property(message) if self._names is None else self._of_header(message)

    def of_key(self, bytes address not None):
        """Where the routing key of an address leads."""
        return <object>self._of_key(address)


RING_IS_QUICK = True


def look_up_by_ring(list messages not None, Ring ring not None, resolve):
    """Where each message goes by a property or a header: as `ring` has it, else what `resolve` says of it."""
    cdef list found = []
    cdef Message message
    cdef Py_ssize_t index
    cdef PyObject *known
    for index in range(PyList_GET_SIZE(messages)):
        message = <Message?>messages[index]
        known = ring._of_message(message)
        PyList_Append(found, <object>known if known != NULL else resolve(message))
    return found
