# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""The compiled record packer: same bytes and same answers as `_record_py`.

State: a CRC table and the CPU's ability, both set at import. Called through `storage.record` only,
which documents the layouts. Attributes are read under the interpreter lock; copying and CRC are
done without it. Invariants as in `_record_py`. The CRC folds 64 bytes at a time with carry-less
multiplication where the CPU has it (Intel, "Fast CRC Computation Using PCLMULQDQ"), and takes 8
bytes at a time from tables elsewhere.
"""

include "build_stamp.pxi"

from cpython.array cimport array, clone
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.mem cimport PyMem_Free, PyMem_Malloc
from cpython.object cimport PyObject
from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

cdef extern from "Python.h":
    void Py_INCREF(object)
    void Py_XDECREF(PyObject*)
    char* PyBytes_AsString(PyObject*) except NULL

cdef extern from *:
    """
    #include <stdint.h>
    #include <string.h>

    static uint32_t burrow_table[8][256];

    static uint32_t burrow_crc_slices(uint32_t crc, const uint8_t *p, size_t n) {
        while (n && ((uintptr_t)p & 7)) {
            crc = (crc >> 8) ^ burrow_table[0][(crc ^ *p++) & 0xff];
            n--;
        }
        while (n >= 8) {
            uint32_t low = crc ^ ((uint32_t)p[0] | (uint32_t)p[1] << 8 |
                                  (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24);
            crc = burrow_table[7][low & 0xff] ^ burrow_table[6][(low >> 8) & 0xff] ^
                  burrow_table[5][(low >> 16) & 0xff] ^ burrow_table[4][low >> 24] ^
                  burrow_table[3][p[4]] ^ burrow_table[2][p[5]] ^
                  burrow_table[1][p[6]] ^ burrow_table[0][p[7]];
            p += 8;
            n -= 8;
        }
        while (n--)
            crc = (crc >> 8) ^ burrow_table[0][(crc ^ *p++) & 0xff];
        return crc;
    }

    #if defined(__x86_64__) && defined(__GNUC__)
    #include <immintrin.h>
    #define BURROW_FOLD(x, k, y) \\
        _mm_xor_si128(_mm_xor_si128(_mm_clmulepi64_si128(x, k, 0x00), \\
                                    _mm_clmulepi64_si128(x, k, 0x11)), y)

    /* n >= 64 and a multiple of 16. Bit-reflected constants of the polynomial 0x104C11DB7. */
    __attribute__((target("pclmul,sse4.1")))
    static uint32_t burrow_crc_fold(uint32_t crc, const uint8_t *p, size_t n) {
        const __m128i k12 = _mm_set_epi64x(0x01c6e41596, 0x0154442bd4);
        const __m128i k34 = _mm_set_epi64x(0x00ccaa009e, 0x01751997d0);
        const __m128i k5 = _mm_set_epi64x(0, 0x0163cd6124);
        const __m128i poly = _mm_set_epi64x(0x01f7011641, 0x01db710641);
        const __m128i mask = _mm_setr_epi32(~0, 0, ~0, 0);
        __m128i a = _mm_loadu_si128((const __m128i *)p);
        __m128i b = _mm_loadu_si128((const __m128i *)(p + 16));
        __m128i c = _mm_loadu_si128((const __m128i *)(p + 32));
        __m128i d = _mm_loadu_si128((const __m128i *)(p + 48));
        __m128i t;
        a = _mm_xor_si128(a, _mm_cvtsi32_si128((int)crc));
        p += 64;
        n -= 64;
        while (n >= 64) {
            a = BURROW_FOLD(a, k12, _mm_loadu_si128((const __m128i *)p));
            b = BURROW_FOLD(b, k12, _mm_loadu_si128((const __m128i *)(p + 16)));
            c = BURROW_FOLD(c, k12, _mm_loadu_si128((const __m128i *)(p + 32)));
            d = BURROW_FOLD(d, k12, _mm_loadu_si128((const __m128i *)(p + 48)));
            p += 64;
            n -= 64;
        }
        a = BURROW_FOLD(a, k34, b);
        a = BURROW_FOLD(a, k34, c);
        a = BURROW_FOLD(a, k34, d);
        while (n >= 16) {
            a = BURROW_FOLD(a, k34, _mm_loadu_si128((const __m128i *)p));
            p += 16;
            n -= 16;
        }
        t = _mm_clmulepi64_si128(a, k34, 0x10);
        a = _mm_xor_si128(_mm_srli_si128(a, 8), t);
        t = _mm_srli_si128(a, 4);
        a = _mm_xor_si128(_mm_clmulepi64_si128(_mm_and_si128(a, mask), k5, 0x00), t);
        t = _mm_clmulepi64_si128(_mm_and_si128(a, mask), poly, 0x10);
        t = _mm_clmulepi64_si128(_mm_and_si128(t, mask), poly, 0x00);
        return (uint32_t)_mm_extract_epi32(_mm_xor_si128(a, t), 1);
    }
    static int burrow_can_fold(void) {
        __builtin_cpu_init();
        return __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.1");
    }
    #else
    static uint32_t burrow_crc_fold(uint32_t crc, const uint8_t *p, size_t n) {
        return burrow_crc_slices(crc, p, n);
    }
    static int burrow_can_fold(void) { return 0; }
    #endif

    static int burrow_fold = 0;

    static void burrow_crc_setup(void) {
        int i, k;
        for (i = 0; i < 256; i++) {
            uint32_t c = (uint32_t)i;
            for (k = 0; k < 8; k++)
                c = c & 1 ? 0xEDB88320u ^ (c >> 1) : c >> 1;
            burrow_table[0][i] = c;
        }
        for (i = 0; i < 256; i++)
            for (k = 1; k < 8; k++)
                burrow_table[k][i] = (burrow_table[k - 1][i] >> 8) ^
                                     burrow_table[0][burrow_table[k - 1][i] & 0xff];
        burrow_fold = burrow_can_fold();
    }

    static void burrow_crc_choose(int fold) { burrow_fold = fold && burrow_can_fold(); }
    static int burrow_crc_folds(void) { return burrow_fold; }

    /* zlib's crc32(): the value goes in and comes out complemented. */
    static uint32_t burrow_crc(uint32_t crc, const uint8_t *p, size_t n) {
        crc = ~crc;
        if (burrow_fold && n >= 64) {
            size_t whole = n & ~(size_t)15;
            crc = burrow_crc_fold(crc, p, whole);
            p += whole;
            n -= whole;
        }
        return ~burrow_crc_slices(crc, p, n);
    }

    static void burrow_put16(uint8_t *p, uint32_t v) { p[0] = (uint8_t)v; p[1] = (uint8_t)(v >> 8); }
    static void burrow_put32(uint8_t *p, uint32_t v) {
        p[0] = (uint8_t)v; p[1] = (uint8_t)(v >> 8); p[2] = (uint8_t)(v >> 16); p[3] = (uint8_t)(v >> 24);
    }
    static void burrow_put64(uint8_t *p, uint64_t v) {
        burrow_put32(p, (uint32_t)v); burrow_put32(p + 4, (uint32_t)(v >> 32));
    }
    static uint32_t burrow_get16(const uint8_t *p) { return (uint32_t)p[0] | (uint32_t)p[1] << 8; }
    static uint32_t burrow_get32(const uint8_t *p) {
        return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
    }
    static uint64_t burrow_get64(const uint8_t *p) {
        return (uint64_t)burrow_get32(p) | (uint64_t)burrow_get32(p + 4) << 32;
    }
    """
    void burrow_crc_setup() nogil
    void burrow_crc_choose(int) nogil
    int burrow_crc_folds() nogil
    uint32_t burrow_crc(uint32_t, const uint8_t*, size_t) nogil
    void burrow_put16(uint8_t*, uint32_t) nogil
    void burrow_put32(uint8_t*, uint32_t) nogil
    void burrow_put64(uint8_t*, uint64_t) nogil
    uint32_t burrow_get16(const uint8_t*) nogil
    uint32_t burrow_get32(const uint8_t*) nogil
    uint64_t burrow_get64(const uint8_t*) nogil

NAME = "compiled"

cdef enum:
    HEADER = 24
    META = 12
    MAGIC_WORD = 0x51A5
    MESSAGE = 1
    LARGE = 4000000
    ENTRY = 32
    # Of bytes: less is packed without a moment for other threads, which would cost more than the packing.
    SMALL = 16384
    # Of messages, and bytes: more are packed column by column.
    STORED = 128
    STORED_BYTES = 98304
    LOG_RECORD = 20
    PRESENT = 1
    IN_STORE = 2
    PERSISTENT = 65536
    PLACE_BITS = 0x7FFFFF  # as in _record_py
    HAS_PLACE = 0x800000

cdef uint32_t FOLLOWS_SYNC = 0x80000000  # as in _record_py

cdef array _u32 = array("I")
cdef array _u64 = array("Q")
cdef array _i64 = array("q")

burrow_crc_setup()


def crc_folds():
    """Tell whether the CRC uses carry-less multiplication on this CPU."""
    return bool(burrow_crc_folds())


def choose_crc(bint fold):
    """Tests only: choose between folding (where the CPU can) and tables."""
    burrow_crc_choose(fold)


def crc32(const uint8_t[::1] data not None, uint32_t seed):
    """Give zlib's CRC-32 of data, continued from seed."""
    cdef size_t size = data.shape[0]
    cdef const uint8_t* at
    if size == 0:
        return seed
    at = &data[0]
    if size < STORED_BYTES:
        return burrow_crc(seed, at, size)
    with nogil:
        seed = burrow_crc(seed, at, size)
    return seed


cdef struct Piece:
    PyObject* address
    PyObject* raw
    const uint8_t* address_at
    const uint8_t* raw_at
    uint32_t address_size
    uint32_t raw_size
    uint64_t size
    uint32_t flags


cdef void _fill(uint8_t* to, Piece* pieces, Py_ssize_t count, uint32_t slot, uint32_t segment,
                uint32_t seed) noexcept nogil:
    """Lay out count records one after the other."""
    cdef Py_ssize_t i
    cdef Piece* piece
    cdef uint32_t meta
    for i in range(count):
        piece = &pieces[i]
        meta = META + piece.address_size
        burrow_put16(to, MAGIC_WORD)
        to[2] = MESSAGE
        to[3] = 0
        burrow_put32(to + 4, segment)
        burrow_put32(to + 8, slot)
        burrow_put32(to + 12, meta)
        burrow_put32(to + 16, piece.raw_size)
        burrow_put32(to + 24, piece.flags)
        burrow_put64(to + 28, piece.size)
        memcpy(to + HEADER + META, piece.address_at, piece.address_size)
        memcpy(to + HEADER + meta, piece.raw_at, piece.raw_size)
        burrow_put32(to + 20, burrow_crc(burrow_crc(seed, to, 20), to + HEADER,
                                         <size_t>meta + piece.raw_size))
        to += <size_t>HEADER + meta + piece.raw_size
        slot += 1


def pack_records(messages, uint32_t first_slot, uint32_t segment_no, uint32_t seed,
                 Py_ssize_t start, Py_ssize_t limit):
    """Pack messages[start:] until limit bytes are reached (0: all) or a large record comes up."""
    cdef Py_ssize_t most = len(messages) - start
    cdef Py_ssize_t count = 0
    cdef Py_ssize_t total = 0
    cdef Py_ssize_t i
    cdef Py_ssize_t size
    cdef bytes address
    cdef bytes raw
    cdef bytes blob
    cdef uint8_t* to
    cdef array sizes
    cdef Piece* pieces
    if most <= 0:
        return b"", clone(_u32, 0, False)
    pieces = <Piece*>PyMem_Malloc(most * sizeof(Piece))
    if pieces == NULL:
        raise MemoryError
    try:
        sizes = clone(_u32, most, False)
        while count < most:
            message = messages[start + count]
            raw = message.raw
            if raw is None:
                raise TypeError("raw is not bytes")
            if count and PyBytes_GET_SIZE(raw) >= LARGE:
                break
            address = message.address
            if address is None:
                raise TypeError("address is not bytes")
            pieces[count].flags = message.flags
            pieces[count].size = message.size
            size = HEADER + META + PyBytes_GET_SIZE(address) + PyBytes_GET_SIZE(raw)
            if size > 0xFFFFFFFF:
                raise OverflowError("record of 4 GiB or more")
            # The references keep the octets alive while the lock is released.
            Py_INCREF(address)
            Py_INCREF(raw)
            pieces[count].address = <PyObject*>address
            pieces[count].raw = <PyObject*>raw
            pieces[count].address_at = <const uint8_t*>PyBytes_AS_STRING(address)
            pieces[count].raw_at = <const uint8_t*>PyBytes_AS_STRING(raw)
            pieces[count].address_size = <uint32_t>PyBytes_GET_SIZE(address)
            pieces[count].raw_size = <uint32_t>PyBytes_GET_SIZE(raw)
            sizes.data.as_uints[count] = <uint32_t>size
            total += size
            count += 1
            if limit and total >= limit:
                break
        blob = PyBytes_FromStringAndSize(NULL, total)
        to = <uint8_t*>PyBytes_AS_STRING(blob)
        if total < SMALL:
            _fill(to, pieces, count, first_slot, segment_no, seed)
        else:
            with nogil:
                _fill(to, pieces, count, first_slot, segment_no, seed)
        if count < most:
            sizes = sizes[:count]
        return blob, sizes
    finally:
        for i in range(count):
            Py_XDECREF(pieces[i].address)
            Py_XDECREF(pieces[i].raw)
        PyMem_Free(pieces)


def assign_handles(messages, Py_ssize_t start, Py_ssize_t count, int64_t first_handle):
    """Give count messages consecutive handles."""
    cdef Py_ssize_t i
    for i in range(start, start + count):
        messages[i].handle = first_handle
        first_handle += 1


cdef size_t _check(const uint8_t* at, size_t left, uint32_t seed, bint is_checked) noexcept nogil:
    """Validate the message record at a place, its checksum too if is_checked; its size, or 0."""
    cdef uint32_t meta
    cdef uint64_t size
    if left < HEADER + META:
        return 0
    if burrow_get16(at) != MAGIC_WORD or at[2] != MESSAGE or at[3] != 0:
        return 0
    meta = burrow_get32(at + 12)
    size = <uint64_t>HEADER + meta + burrow_get32(at + 16)
    if meta < META or size > left:
        return 0
    if is_checked and (
        burrow_crc(burrow_crc(seed, at, 20), at + HEADER, size - HEADER) != burrow_get32(at + 20)
    ):
        return 0
    return size


cdef tuple _tuple_of(const uint8_t* at, size_t size):
    """Copy a valid record out."""
    cdef uint32_t meta = burrow_get32(at + 12)
    return (
        PyBytes_FromStringAndSize(<const char*>at + HEADER + META, meta - META),
        PyBytes_FromStringAndSize(<const char*>at + HEADER + meta, size - HEADER - meta),
        burrow_get64(at + HEADER + 4),
        burrow_get32(at + HEADER) & ~FOLLOWS_SYNC,
    )


def unpack_record(const uint8_t[::1] buffer not None, Py_ssize_t offset, uint32_t segment_no,
                  uint32_t slot, uint32_t seed):
    """Give the message at offset, or None when it is not there whole and right."""
    cdef size_t length = buffer.shape[0]
    cdef const uint8_t* at
    cdef size_t size
    if offset < 0 or <size_t>offset >= length:
        return None
    at = &buffer[0] + offset
    with nogil:
        size = _check(at, length - offset, seed, True)
    if size == 0 or burrow_get32(at + 4) != segment_no or burrow_get32(at + 8) != slot:
        return None
    return _tuple_of(at, size)


def unpack_many(const uint8_t[::1] buffer not None, offsets, uint32_t segment_no, slots,
                uint32_t seed, bint is_checked=True):
    """Give the messages at the offsets; None in the place of each bad one."""
    cdef Py_ssize_t count = len(offsets)
    cdef Py_ssize_t length = buffer.shape[0]
    cdef const uint8_t* base = NULL
    cdef const uint8_t* at
    cdef Py_ssize_t i
    cdef size_t* found
    cdef Py_ssize_t* places
    cdef uint32_t* wanted
    cdef list out = [None] * count
    if len(slots) != count:
        raise ValueError("offsets and slots differ in length")
    if count == 0 or length == 0:
        return out
    base = &buffer[0]
    found = <size_t*>PyMem_Malloc(count * (sizeof(size_t) + sizeof(Py_ssize_t) + sizeof(uint32_t)))
    if found == NULL:
        raise MemoryError
    places = <Py_ssize_t*>(found + count)
    wanted = <uint32_t*>(places + count)
    try:
        for i in range(count):
            places[i] = offsets[i]
            wanted[i] = slots[i]
        with nogil:
            for i in range(count):
                found[i] = 0
                if 0 <= places[i] < length:
                    at = base + places[i]
                    found[i] = _check(at, length - places[i], seed, is_checked)
                    if found[i] and (burrow_get32(at + 4) != segment_no
                                     or burrow_get32(at + 8) != wanted[i]):
                        found[i] = 0
        for i in range(count):
            if found[i]:
                out[i] = _tuple_of(base + places[i], found[i])
        return out
    finally:
        PyMem_Free(found)


def scan(const uint8_t[::1] buffer not None, Py_ssize_t start, uint32_t seed):
    """Walk valid message records from start; ends at the first place that is not one."""
    cdef Py_ssize_t length = buffer.shape[0]
    cdef const uint8_t* base = NULL
    cdef const uint8_t* at
    cdef Py_ssize_t room = 1024
    cdef Py_ssize_t count
    cdef Py_ssize_t i
    cdef Py_ssize_t base_count = 0
    cdef size_t size
    cdef array segments = clone(_u32, 0, False)
    cdef array slots = clone(_u32, 0, False)
    cdef array offsets = clone(_u64, 0, False)
    cdef array sizes = clone(_u32, 0, False)
    cdef uint32_t[1024] found_segments
    cdef uint32_t[1024] found_slots
    cdef uint64_t[1024] found_offsets
    cdef uint32_t[1024] found_sizes
    if length:
        base = &buffer[0]
    while 0 <= start < length:
        count = 0
        with nogil:
            while count < room and start < length:
                at = base + start
                size = _check(at, length - start, seed, True)
                if size == 0:
                    break
                found_segments[count] = burrow_get32(at + 4)
                found_slots[count] = burrow_get32(at + 8)
                found_offsets[count] = start
                found_sizes[count] = <uint32_t>size
                start += size
                count += 1
        if count:
            segments.frombytes((<char*>found_segments)[: count * 4])
            slots.frombytes((<char*>found_slots)[: count * 4])
            offsets.frombytes((<char*>found_offsets)[: count * 8])
            sizes.frombytes((<char*>found_sizes)[: count * 4])
        if count < room:
            break
    return segments, slots, offsets, sizes, start


def ranges_of(handles):
    """Give the runs of consecutive handles as (first, last)."""
    cdef Py_ssize_t count = len(handles)
    cdef Py_ssize_t i
    cdef int64_t first
    cdef int64_t last
    cdef int64_t handle
    cdef list ranges = []
    if count == 0:
        return ranges
    first = last = handles[0]
    for i in range(1, count):
        handle = handles[i]
        if handle != last + 1:
            ranges.append((first, last))
            first = handle
        last = handle
    ranges.append((first, last))
    return ranges


def message_columns(messages, Py_ssize_t start, Py_ssize_t count):
    """Give the columns flags (u32), size (u32) and handle (i64) of a slice of messages."""
    cdef Py_ssize_t end = min(start + count, len(messages))
    cdef Py_ssize_t i
    cdef array flags
    cdef array sizes
    cdef array handles
    count = end - start if end > start else 0
    flags = clone(_u32, count, False)
    sizes = clone(_u32, count, False)
    handles = clone(_i64, count, False)
    for i in range(count):
        message = messages[start + i]
        flags.data.as_uints[i] = message.flags
        sizes.data.as_uints[i] = message.size
        handles.data.as_longlongs[i] = message.handle
    return flags, sizes, handles


def pack_index_entries(columns, uint32_t first_slot, uint32_t segment_no, uint32_t seed):
    """Pack the seven columns into 32-byte entries for the places from first_slot on; status 0 gives zeros."""
    cdef const uint8_t[::1] statuses = columns[0]
    cdef const uint8_t[::1] flags = columns[1]
    cdef const uint8_t[::1] kinds = columns[2]
    cdef const uint64_t[::1] locations = columns[3]
    cdef const uint32_t[::1] sizes = columns[4]
    cdef const uint32_t[::1] payloads = columns[5]
    cdef const uint64_t[::1] expiries = columns[6]
    cdef Py_ssize_t count = statuses.shape[0]
    cdef Py_ssize_t i
    cdef bytes blob
    cdef uint8_t* to
    if not (flags.shape[0] == kinds.shape[0] == locations.shape[0] == sizes.shape[0]
            == payloads.shape[0] == expiries.shape[0] == count):
        raise ValueError("columns differ in length")
    blob = PyBytes_FromStringAndSize(NULL, count * ENTRY)
    to = <uint8_t*>PyBytes_AS_STRING(blob)
    if count * ENTRY < SMALL:
        for i in range(count):
            _put_entry(to, statuses[i], flags[i], kinds[i], locations[i], sizes[i], payloads[i],
                       expiries[i], _place(segment_no, first_slot + <uint32_t>i), seed)
            to += ENTRY
    else:
        with nogil:
            for i in range(count):
                _put_entry(to, statuses[i], flags[i], kinds[i], locations[i], sizes[i],
                           payloads[i], expiries[i],
                           _place(segment_no, first_slot + <uint32_t>i), seed)
                to += ENTRY
    return blob


cdef uint32_t _place(uint32_t segment_no, uint32_t slot) noexcept nogil:
    """What an entry says of its place."""
    return ((segment_no << 16) + slot) & PLACE_BITS | HAS_PLACE


cdef void _put_entry(uint8_t* to, uint8_t status, uint8_t flags, uint8_t kind, uint64_t location,
                     uint32_t size, uint32_t payload, uint64_t expiry, uint32_t place,
                     uint32_t seed) noexcept nogil:
    """Lay out one entry; status 0 gives zeros."""
    memset(to, 0, ENTRY)
    if status == 0:
        return
    to[0] = status
    to[1] = flags
    burrow_put32(to + 4, <uint32_t>kind | place << 8)
    burrow_put64(to + 8, location)
    burrow_put32(to + 16, size)
    burrow_put32(to + 20, payload)
    burrow_put64(to + 24, expiry)
    burrow_put16(to + 2, burrow_crc(burrow_crc(seed, to, 2), to + 4, ENTRY - 4))


def pack_stored(messages, expiries, uint32_t first_slot, uint32_t segment_no, uint32_t seed,
                uint64_t location):
    """Pack a short run for a queue's own store: (records, entries, whether one is persistent), or None."""
    cdef Py_ssize_t count = len(messages)
    cdef Py_ssize_t total = 0
    cdef Py_ssize_t i
    cdef Py_ssize_t size
    cdef bytes address
    cdef bytes raw
    cdef bytes records
    cdef bytes entries
    cdef uint8_t* to
    cdef uint8_t* entry
    cdef uint32_t flags
    cdef uint32_t persistent = 0
    cdef Piece piece
    if count > STORED:
        return None
    if count > 1 and count * len(messages[0].raw) >= STORED_BYTES:
        return None  # as the others are as long, mostly
    for message in messages:
        raw = message.raw
        address = message.address
        if raw is None or address is None:
            raise TypeError("raw or address is not bytes")
        if message.handle >= 0:
            return None
        total += HEADER + META + PyBytes_GET_SIZE(address) + PyBytes_GET_SIZE(raw)
        if total >= STORED_BYTES:
            return None
    records = PyBytes_FromStringAndSize(NULL, total)
    entries = PyBytes_FromStringAndSize(NULL, count * ENTRY)
    to = <uint8_t*>PyBytes_AS_STRING(records)
    entry = <uint8_t*>PyBytes_AS_STRING(entries)
    for i in range(count):
        message = messages[i]
        raw = message.raw
        address = message.address
        size = HEADER + META + PyBytes_GET_SIZE(address) + PyBytes_GET_SIZE(raw)
        total -= size
        if total < 0:
            raise ValueError("a message has changed")
        flags = message.flags
        piece.address_at = <const uint8_t*>PyBytes_AS_STRING(address)
        piece.raw_at = <const uint8_t*>PyBytes_AS_STRING(raw)
        piece.address_size = <uint32_t>PyBytes_GET_SIZE(address)
        piece.raw_size = <uint32_t>PyBytes_GET_SIZE(raw)
        piece.size = message.size
        piece.flags = flags
        _fill(to, &piece, 1, first_slot + <uint32_t>i, segment_no, seed)
        persistent |= flags & PERSISTENT
        _put_entry(entry, PRESENT, 1 if flags & PERSISTENT else 0, IN_STORE, location,
                   <uint32_t>size, message.size, 0 if expiries is None else expiries[i],
                   _place(segment_no, first_slot + <uint32_t>i), seed)
        to += size
        location += size
        entry += ENTRY
    if total:
        raise ValueError("a message has changed")
    return records, entries, persistent != 0


def pack_log_writes(uint32_t seed, uint8_t kind, list writes not None):
    """Pack a record of the commit log for each (path, offset, bytes) of some writes."""
    cdef Py_ssize_t total = 0
    cdef Py_ssize_t size
    cdef Py_ssize_t name_size
    cdef uint64_t offset
    cdef bytes name
    cdef bytes data
    cdef bytes packed
    cdef uint8_t* to
    cdef uint8_t* end
    for name, _, data in writes:
        if name is None or data is None:
            raise TypeError("a path or data is not bytes")
        if PyBytes_GET_SIZE(name) > 0xFFFF or PyBytes_GET_SIZE(data) > 0xFFFFFFFF:
            raise OverflowError("a path or data is too long")
        total += LOG_RECORD + PyBytes_GET_SIZE(name) + PyBytes_GET_SIZE(data)
    packed = PyBytes_FromStringAndSize(NULL, total)
    to = <uint8_t*>PyBytes_AS_STRING(packed)
    end = to + total
    for name, offset, data in writes:
        name_size, size = PyBytes_GET_SIZE(name), PyBytes_GET_SIZE(data)
        if LOG_RECORD + name_size + size > end - to:
            raise ValueError("a list of writes has changed")
        to[0] = kind
        to[1] = 0
        burrow_put16(to + 2, <uint32_t>name_size)
        burrow_put32(to + 4, <uint32_t>size)
        burrow_put64(to + 8, offset)
        memcpy(to + LOG_RECORD, PyBytes_AS_STRING(name), name_size)
        burrow_put32(to + 16, burrow_crc(burrow_crc(seed, to, 16), to + LOG_RECORD, name_size))
        memcpy(to + LOG_RECORD + name_size, PyBytes_AS_STRING(data), size)
        to += LOG_RECORD + name_size + size
    if to != end:
        raise ValueError("a list of writes has changed")
    return packed


cdef uint8_t _entry_status(const uint8_t* at, uint32_t place, uint32_t seed) noexcept nogil:
    """0 for an entry of zeros, its status when the check passes and the place is its own, else 255."""
    cdef int i
    cdef uint32_t told
    if at[0] == 0:
        for i in range(ENTRY):
            if at[i]:
                return 255
        return 0
    if (burrow_crc(burrow_crc(seed, at, 2), at + 4, ENTRY - 4) & 0xFFFF) != burrow_get16(at + 2):
        return 255
    told = burrow_get32(at + 4) >> 8
    return at[0] if told == 0 or told == place else 255


def unpack_index_entries(const uint8_t[::1] buffer not None, uint32_t first_slot,
                         uint32_t segment_no, uint32_t seed):
    """Give the seven columns of whole entries; status 255 where the check fails, or another place is told."""
    cdef Py_ssize_t count = buffer.shape[0] // ENTRY
    cdef Py_ssize_t i
    cdef const uint8_t* at
    cdef bytes statuses = PyBytes_FromStringAndSize(NULL, count)
    cdef bytes flags = PyBytes_FromStringAndSize(NULL, count)
    cdef bytes kinds = PyBytes_FromStringAndSize(NULL, count)
    cdef uint8_t* status_at = <uint8_t*>PyBytes_AS_STRING(statuses)
    cdef uint8_t* flags_at = <uint8_t*>PyBytes_AS_STRING(flags)
    cdef uint8_t* kinds_at = <uint8_t*>PyBytes_AS_STRING(kinds)
    cdef array locations = clone(_u64, count, False)
    cdef array sizes = clone(_u32, count, False)
    cdef array payloads = clone(_u32, count, False)
    cdef array expiries = clone(_u64, count, False)
    cdef unsigned long long* location_at = locations.data.as_ulonglongs
    cdef unsigned long long* expiry_at = expiries.data.as_ulonglongs
    cdef unsigned int* size_at = sizes.data.as_uints
    cdef unsigned int* payload_at = payloads.data.as_uints
    if count:
        at = &buffer[0]
        with nogil:
            for i in range(count):
                status_at[i] = _entry_status(
                    at, _place(segment_no, first_slot + <uint32_t>i), seed)
                flags_at[i] = at[1]
                kinds_at[i] = at[4]
                location_at[i] = burrow_get64(at + 8)
                size_at[i] = burrow_get32(at + 16)
                payload_at[i] = burrow_get32(at + 20)
                expiry_at[i] = burrow_get64(at + 24)
                at += ENTRY
    return statuses, flags, kinds, locations, sizes, payloads, expiries
