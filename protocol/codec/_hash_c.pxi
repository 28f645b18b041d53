# Erlang's hash of octets, and the jump hash with Erlang's generator: the twin of _hash_py.


cdef inline void _mix(uint32_t *a, uint32_t *b, uint32_t *c) noexcept nogil:
    a[0] -= b[0]; a[0] -= c[0]; a[0] ^= c[0] >> 13
    b[0] -= c[0]; b[0] -= a[0]; b[0] ^= a[0] << 8
    c[0] -= a[0]; c[0] -= b[0]; c[0] ^= b[0] >> 13
    a[0] -= b[0]; a[0] -= c[0]; a[0] ^= c[0] >> 12
    b[0] -= c[0]; b[0] -= a[0]; b[0] ^= a[0] << 16
    c[0] -= a[0]; c[0] -= b[0]; c[0] ^= b[0] >> 5
    a[0] -= b[0]; a[0] -= c[0]; a[0] ^= c[0] >> 3
    b[0] -= c[0]; b[0] -= a[0]; b[0] ^= a[0] << 10
    c[0] -= a[0]; c[0] -= b[0]; c[0] ^= b[0] >> 15


cdef inline uint32_t _little(const uint8_t *octets, Py_ssize_t count) noexcept nogil:
    """Up to four octets as a number, the lowest first."""
    cdef uint32_t found = 0
    cdef Py_ssize_t at
    for at in range(count):
        found |= <uint32_t>octets[at] << 8 * at
    return found


def hash_octets(bytes octets not None, uint32_t seed):
    """The 32-bit hash of octets, in a chain of hashes that is at `seed`."""
    return _hash_octets(
        <const uint8_t *>PyBytes_AS_STRING(octets), PyBytes_GET_SIZE(octets), seed
    )


cdef uint32_t _hash_octets(const uint8_t *data, Py_ssize_t size, uint32_t seed) noexcept nogil:
    cdef Py_ssize_t left = size
    cdef uint32_t a = 0x9E3779B9, b = 0x9E3779B9, c = seed
    if not size:
        return seed
    while left >= 12:
        a += _little(data, 4)
        b += _little(data + 4, 4)
        c += _little(data + 8, 4)
        _mix(&a, &b, &c)
        data += 12
        left -= 12
    c += <uint32_t>size
    if left > 8:
        c += _little(data + 8, left - 8) << 8
    if left > 4:
        b += _little(data + 4, min(left - 4, <Py_ssize_t>4))
    a += _little(data, min(left, <Py_ssize_t>4))
    _mix(&a, &b, &c)
    return c


def jump(uint64_t key, int64_t bucket_count):
    """The bucket, from 0, of a key; when one more comes, each key stays or goes to that one."""
    return _jump(key, bucket_count)


cdef int64_t _jump(uint64_t key, int64_t bucket_count) noexcept nogil:
    cdef uint64_t state[16]
    cdef uint64_t number, last, drawn
    cdef uint64_t low = (key & 0x1FFFFF) + 1
    cdef int64_t bucket = -1, following = 0
    cdef double reached
    cdef int at
    if bucket_count == 1:
        return 0
    number = (low * 2097131 & 0x1FFFFF) << 43
    number |= (low * 2097133 & 0x1FFFFF) << 22
    number |= (low * 2097143 & 0x1FFFFF) << 1 | 1
    for at in range(15, -1, -1):
        number ^= number >> 12
        number ^= (number & <uint64_t>0x7FFFFFFFFF) << 25
        number ^= number >> 27
        state[at] = number * <uint64_t>2685821657736338717
    at = 0
    while following < bucket_count:
        bucket = following
        last = state[at]
        at = at + 1 & 15
        drawn = state[at]
        drawn ^= drawn << 31
        drawn = drawn ^ drawn >> 11 ^ last ^ last >> 30
        state[at] = drawn
        drawn = drawn * <uint64_t>1181783497276652981 >> 11
        if not drawn:
            break
        reached = (bucket + 1) / (<double>drawn * 1.1102230246251565e-16)
        following = <int64_t>reached if reached < bucket_count else bucket_count
    return bucket
