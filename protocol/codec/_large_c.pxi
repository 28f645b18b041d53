# A content on its way in that is too large to be kept as octets and walked again at each read: the twin of _large_py.
#
# Its frames follow each other in the stream as they will lie in the message, so each octet is copied once, to where it
# stays. State: what has come of one content. A frame that is not the next of its body ends it: `take` says so, and the
# codec goes on as if it had not begun.
#
# Whoever reads the octets may be lent the room that they will lie in (`room` of the codec), so that not even one copy is
# made. A LargeContent is that room while it is lent, as buffers go: then its memory stays where it is.

cdef extern from "Python.h":
    object PyMemoryView_FromObject(object)
    int PyBuffer_FillInfo(Py_buffer *, object, void *, Py_ssize_t, int, int) except -1
    PyObject *_new_bytes "PyBytes_FromStringAndSize"(const char *, Py_ssize_t) except NULL
    int _resize_bytes "_PyBytes_Resize"(PyObject **, Py_ssize_t) except -1
    void Py_XDECREF(PyObject *)

cdef extern from *:
    """
    #include <stdint.h>
    #include <sys/mman.h>
    #define HUGE_PAGE ((uintptr_t)2 << 20)
    /* A body of many megabytes is written to once, from its start to its end: a fault for each two megabytes of it
       instead of for each four kilobytes. A system without such pages, or that refuses, leaves everything as it is. */
    static void in_huge_pages(void *start, size_t size) {
    #ifdef MADV_HUGEPAGE
        uintptr_t first = ((uintptr_t)start + HUGE_PAGE - 1) & ~(HUGE_PAGE - 1);
        uintptr_t end = ((uintptr_t)start + size) & ~(HUGE_PAGE - 1);
        if (end > first && end - first >= 2 * HUGE_PAGE)
            (void)madvise((void *)first, end - first, MADV_HUGEPAGE);
    #endif
    }
    """
    void in_huge_pages(void *, size_t) nogil


@cython.final
cdef class LargeContent:
    """The frames of one content, as far as they have come: a header frame, then body frames."""

    cdef bytes method
    cdef bytes address
    cdef PyObject *raw
    cdef Py_ssize_t at  # octets that have come
    cdef Py_ssize_t room
    cdef Py_ssize_t expected  # octets of the whole, if all frames are like the first
    cdef Py_ssize_t frame_at  # where the frame begins that is under way
    cdef Py_ssize_t frame_end  # 0 until its seven octets have come
    cdef Py_ssize_t used  # octets taken of the last read
    cdef Py_ssize_t lent  # octets of it, from `at` on, that may be written to
    cdef int views  # of that room
    cdef uint64_t left  # octets of the body in frames that are not whole yet
    cdef int64_t size
    cdef uint32_t flags
    cdef uint32_t largest
    cdef uint32_t frame_max
    cdef uint16_t channel

    def __cinit__(self):
        self.raw = NULL

    def __dealloc__(self):
        Py_XDECREF(self.raw)

    def __getbuffer__(self, Py_buffer *view, int flags):
        PyBuffer_FillInfo(
            view, self, PyBytes_AS_STRING(<object>self.raw) + self.at, self.lent, 0, flags
        )
        self.views += 1

    def __releasebuffer__(self, Py_buffer *view):
        self.views -= 1

    cdef int begin(self, const uint8_t *frames, Py_ssize_t count) except -1:
        """Take the whole frames that are there."""
        self.room = min(self.expected, <Py_ssize_t>LARGE_STEP)
        if self.room < count:
            self.room = count
        self.raw = _new_bytes(NULL, self.room)
        memcpy(PyBytes_AS_STRING(<object>self.raw), frames, count)
        self.at = self.frame_at = count
        self.frame_end = 0
        return 0

    cdef int grow(self, Py_ssize_t size) except -1:
        """Have room for so many octets: memory is taken as octets come, not as they are announced."""
        cdef Py_ssize_t room
        if size <= self.room:
            return 0
        self.keep()
        room = min(self.expected, 8 * self.room)
        self.room = room if room > size else size
        _resize_bytes(&self.raw, self.room)
        in_huge_pages(PyBytes_AS_STRING(<object>self.raw), self.room)
        return 0

    cdef int keep(self) except -1:
        """Nobody may write to it any more."""
        if self.views:
            raise BufferError("the room of a content is still lent")
        return 0

    cdef object lend(self, Py_ssize_t most):
        """Room for the next octets, at most so many; None while there is none."""
        self.lent = min(most, self.room - self.at)
        return PyMemoryView_FromObject(self) if self.lent > 0 else None

    cdef bint take(
        self, const uint8_t *data, Py_ssize_t size, Py_ssize_t pos, bint is_there
    ) except -1:
        """Take octets from `pos` on, until the content is whole (`left` is 0); False when what comes is not of it.

        `is_there`: they lie where they belong already.
        """
        cdef Py_ssize_t part, wanted
        cdef uint8_t *frame
        cdef uint32_t length
        while self.left:
            wanted = (self.frame_end if self.frame_end else self.frame_at + 7) - self.at
            part = wanted if wanted < size - pos else size - pos
            if not is_there:
                self.grow(self.at + part)
                memcpy(PyBytes_AS_STRING(<object>self.raw) + self.at, data + pos, part)
            self.at += part
            pos += part
            self.used = pos
            if part < wanted:
                break
            frame = <uint8_t *>PyBytes_AS_STRING(<object>self.raw) + self.frame_at
            length = u32(frame + 3)
            if self.frame_end:
                if frame[7 + length] != FRAME_END:
                    return False
                self.left -= length
                self.frame_at = self.frame_end
                self.frame_end = 0
            else:
                if (
                    frame[0] != 3
                    or u16(frame + 1) != self.channel
                    or length == 0
                    or length > self.left
                    or length > self.frame_max
                ):
                    return False
                if length + 8 > self.largest:
                    self.largest = length + 8
                self.frame_end = self.frame_at + 8 + <Py_ssize_t>length
        return True

    cdef bytes whole(self):
        """The frames, when all have come."""
        self.keep()
        if self.room > self.at:
            _resize_bytes(&self.raw, self.at)
            self.room = self.at
        return <bytes><object>self.raw

    cdef bytes unwind(self, list events):
        """Append what has come as frames; the octets of the one that is under way."""
        cdef const uint8_t *frames = <const uint8_t *>PyBytes_AS_STRING(<object>self.raw)
        cdef Py_ssize_t pos = 0, length
        events.append(Frame(1, self.channel, self.method))
        while pos < self.frame_at:
            length = u32(frames + pos + 3)
            events.append(
                Frame(
                    frames[pos],
                    self.channel,
                    PyBytes_FromStringAndSize(<const char *>frames + pos + 7, length),
                )
            )
            pos += 8 + length
        return PyBytes_FromStringAndSize(<const char *>frames + pos, self.at - pos)
