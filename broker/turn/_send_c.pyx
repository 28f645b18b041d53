# cython: language_level=3
"""What a turn has for many sockets, sent by one call outside the interpreter's lock, for `outbox.Outbox`.

State: none. Called on the loop. Each send wakes who reads at the other end, which may take this processor from us; with
the lock held the disk thread would wait for that, too.
"""

include "build_stamp.pxi"

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stdlib cimport free, malloc

cdef extern from *:
    """
    #include <sys/socket.h>
    #include <sys/types.h>

    #ifndef MSG_NOSIGNAL
    #define MSG_NOSIGNAL 0
    #endif
    """
    int MSG_DONTWAIT
    int MSG_NOSIGNAL
    ssize_t send(int fd, const void *data, size_t size, int flags) nogil

cdef struct Letter:
    int fd
    const char *data
    Py_ssize_t size


def send_each(list descriptors not None, list octets not None):
    """Send to each socket what stands at its place, bytes; give how much each has taken, -1 where it took nothing.

    A descriptor below 0 is nobody's. Raises ValueError where the lists are not equally long.
    """
    cdef Py_ssize_t count = len(descriptors), at
    cdef bytes data
    if count != len(octets):
        raise ValueError("as many descriptors as octets")
    cdef Letter *each = <Letter *> malloc(max(count, 1) * sizeof(Letter))
    if each == NULL:
        raise MemoryError
    try:
        for at in range(count):
            each[at].fd, data = descriptors[at], octets[at]
            if data is None:
                raise TypeError("nothing is no octets")
            each[at].data, each[at].size = PyBytes_AS_STRING(data), PyBytes_GET_SIZE(data)
        with nogil:
            for at in range(count):
                each[at].size = send(each[at].fd, each[at].data, each[at].size, MSG_DONTWAIT | MSG_NOSIGNAL)
        return [each[at].size for at in range(count)]
    finally:
        free(each)
