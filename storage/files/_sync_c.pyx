# cython: language_level=3
"""Several files written, or made durable, by one call outside the interpreter's lock, for `filesystem.OsFileSystem`.

State: none. Called on the disk thread. Each time that thread takes the lock back it may wait for the loop, so that one
call for all files costs less than one for each, and less than threads that sync at the same time.

Write-back of all files begins first, then they are synced one after the other: a journalling file system has all data
on its way when the first sync commits the journal, and that commit covers the files behind it. What goes wrong with a
write-back is told by the fdatasync of the same file.
"""

include "build_stamp.pxi"

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.errno cimport errno
from libc.stdlib cimport free, malloc

cdef extern from *:
    """
    #ifndef _GNU_SOURCE
    #define _GNU_SOURCE
    #endif
    #include <fcntl.h>
    #include <unistd.h>

    static void burrow_begin(int fd) {
    #ifdef SYNC_FILE_RANGE_WRITE
        (void) !sync_file_range(fd, 0, 0, SYNC_FILE_RANGE_WRITE);
    #else
        (void) fd;
    #endif
    }
    """
    void burrow_begin(int fd) nogil
    int fdatasync(int fd) nogil
    ssize_t pwrite(int fd, const void *data, size_t size, long long offset) nogil

cdef struct Write:
    int fd
    const char *data
    Py_ssize_t size
    long long offset


def sync_files(list descriptors not None):
    """Make what was written to these files durable; give each one's errno, 0 where all went well."""
    cdef Py_ssize_t count = len(descriptors), at
    cdef int *files = <int *> malloc(max(count, 1) * sizeof(int))
    if files == NULL:
        raise MemoryError
    try:
        for at in range(count):
            files[at] = descriptors[at]
        with nogil:
            # The first one's begins with its sync, at once.
            for at in range(1, count):
                burrow_begin(files[at])
            for at in range(count):
                files[at] = errno if fdatasync(files[at]) else 0
        return [files[at] for at in range(count)]
    finally:
        free(files)


def write_files(list writes not None):
    """Write (descriptor, bytes, offset) one after the other; give how many were written whole before one was not."""
    cdef Py_ssize_t count = len(writes), at, done = 0
    cdef bytes data
    cdef Write *each = <Write *> malloc(max(count, 1) * sizeof(Write))
    if each == NULL:
        raise MemoryError
    try:
        for at in range(count):
            each[at].fd, data, each[at].offset = writes[at]
            each[at].data, each[at].size = PyBytes_AS_STRING(data), PyBytes_GET_SIZE(data)
        with nogil:
            while done < count and pwrite(each[done].fd, each[done].data, each[done].size, each[done].offset) == each[done].size:
                done += 1
        return done
    finally:
        free(each)
