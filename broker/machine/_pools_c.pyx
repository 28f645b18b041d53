# cython: language_level=3
"""Unused memory of the interpreter's own allocator, given back to the system: a part of `reclaim`.

CPython keeps objects of up to 512 bytes in pools of 16 KB, 64 of them in an arena of 1 MB, and returns nothing less
than an arena. After much was allocated and freed one connection or log line keeps each of them. Here the pages of pools in
which nothing lives go back, but for the first, which has the pool's header.

Tuples that are gone are kept for the next ones, up to 2,000 of each length, wherever they lie: after a large document or
the deletion of 10,000 queues 7,000 of them kept as many pages. They are let go of first, each made into one of a length
of which none are kept. A full collection does that, too, but looks at every object.

How: arenas are noted as they are made (`PyObject_SetArenaAllocator`). A pool that was used and is free has no blocks in
its header, and the largest offset that belongs to its size class; nothing else looks like that, and where the layout is
another one nothing is found. Its size class is taken from it, as from a pool that was never used: so the interpreter
begins it anew and reads nothing of the pages that are gone. All of it happens with the interpreter's lock held, as all
that the allocator does.

State: the arenas, from `watch` on, of the whole process. Called by `reclaim.ServersAllocator`. Never: a pool in use is
touched; arenas that were there before are looked at; anything is done in versions of Python whose pools nobody has looked at.
Source: CPython 3.11 to 3.13, Objects/obmalloc.c (struct pool_header, allocate_from_new_pool, insert_to_freepool),
Objects/tupleobject.c (maybe_freelist_push).
"""

include "build_stamp.pxi"

cdef extern from *:
    """
    #include <poll.h>
    #include <stdint.h>
    #include <stdlib.h>
    #include <string.h>
    #include <sys/mman.h>
    #include <unistd.h>

    #if PY_VERSION_HEX >= 0x030B0000 && PY_VERSION_HEX < 0x030E0000 && SIZEOF_VOID_P == 8 && !defined(Py_GIL_DISABLED)
    #define BURROW_KNOWN 1
    #else
    #define BURROW_KNOWN 0
    #endif

    #define BURROW_ARENA ((size_t) 1 << 20)
    #define BURROW_POOL ((size_t) 1 << 14)
    #define BURROW_CLASSES 32
    #define BURROW_UNUSED_CLASS 0xffff
    #define BURROW_MOST_ARENAS ((size_t) 1 << 20)

    struct burrow_pool {
        union { void *padding; unsigned int blocks; } in_use;
        void *free_block;
        struct burrow_pool *next, *previous;
        unsigned int arena, size_class, next_offset, last_offset;
    };

    static PyObjectArenaAllocator burrow_before;
    static void **burrow_arenas;
    static size_t burrow_count, burrow_room;

    static void burrow_note(void *arena) {
        if (burrow_count == burrow_room) {
            size_t room = burrow_room ? 2 * burrow_room : 64;
            void **arenas = room > BURROW_MOST_ARENAS ? NULL : realloc(burrow_arenas, room * sizeof(void *));
            if (arenas == NULL)
                return;
            burrow_arenas = arenas;
            burrow_room = room;
        }
        burrow_arenas[burrow_count++] = arena;
    }

    #define BURROW_WORDS 512
    static char burrow_words[BURROW_WORDS];
    static size_t burrow_words_size;
    static int burrow_status;

    static void burrow_end(void) {
        struct pollfd out = {STDERR_FILENO, POLLOUT, 0};
        if (poll(&out, 1, 0) > 0 && write(STDERR_FILENO, burrow_words, burrow_words_size) < 0)
            ;
        _exit(burrow_status);
    }

    static int burrow_end_with(const char *words, size_t size, int status) {
        if (size > BURROW_WORDS || !BURROW_KNOWN)
            return 0;
        memcpy(burrow_words, words, size);
        burrow_words_size = size;
        burrow_status = status;
        return 1;
    }

    static void *burrow_alloc(void *context, size_t size) {
        void *arena = burrow_before.alloc(context, size);
        if (arena != NULL && size == BURROW_ARENA)
            burrow_note(arena);
        else if (arena == NULL && burrow_words_size)
            burrow_end();
        return arena;
    }

    static void burrow_free(void *context, void *arena, size_t size) {
        for (size_t at = burrow_count; at-- > 0;)
            if (burrow_arenas[at] == arena) {
                burrow_arenas[at] = burrow_arenas[--burrow_count];
                break;
            }
        burrow_before.free(context, arena, size);
    }

    static int burrow_watch(void) {
    #if BURROW_KNOWN
        if (burrow_before.alloc == NULL) {
            PyObjectArenaAllocator noting;
            PyObject_GetArenaAllocator(&burrow_before);
            noting.ctx = burrow_before.ctx;
            noting.alloc = burrow_alloc;
            noting.free = burrow_free;
            PyObject_SetArenaAllocator(&noting);
        }
    #endif
        return BURROW_KNOWN;
    }

    #define BURROW_KEPT_TUPLES 2000
    #define BURROW_KEPT_LENGTHS 20

    static void burrow_let_go_of_tuples(void) {
        for (Py_ssize_t length = 1; length <= BURROW_KEPT_LENGTHS; length++)
            for (int at = 0; at < BURROW_KEPT_TUPLES; at++) {
                PyObject *tuple = PyTuple_New(length);
                if (tuple == NULL || _PyTuple_Resize(&tuple, BURROW_KEPT_LENGTHS + 1) < 0) {
                    PyErr_Clear();
                    return;
                }
                Py_DECREF(tuple);
            }
    }

    static size_t burrow_unused(int is_returned) {
        size_t page = (size_t) sysconf(_SC_PAGESIZE), found = 0;
        if (page == 0 || page >= BURROW_POOL)
            return 0;
        for (size_t at = 0; at < burrow_count; at++) {
            uintptr_t begin = ((uintptr_t) burrow_arenas[at] + BURROW_POOL - 1) & ~(BURROW_POOL - 1);
            uintptr_t end = (uintptr_t) burrow_arenas[at] + BURROW_ARENA;
            for (; begin + BURROW_POOL <= end; begin += BURROW_POOL) {
                struct burrow_pool *pool = (struct burrow_pool *) begin;
                if (pool->in_use.blocks || pool->size_class >= BURROW_CLASSES
                        || pool->last_offset != BURROW_POOL - 16 * (pool->size_class + 1)
                        || pool->next_offset > BURROW_POOL)
                    continue;
                if (is_returned) {
                    pool->size_class = BURROW_UNUSED_CLASS;
                    if (madvise((void *) (begin + page), BURROW_POOL - page, MADV_DONTNEED))
                        continue;
                }
                found += BURROW_POOL - page;
            }
        }
        return found;
    }
    """
    bint burrow_watch()
    void burrow_let_go_of_tuples()
    size_t burrow_unused(bint is_returned)
    bint burrow_end_with(const char *words, size_t size, int status)


def watch():
    """Note the arenas that are made from now on; False where nothing is known of them."""
    return burrow_watch()


def end_without_arenas(bytes words, int status):
    """End the process with these words on standard error once the system has no arena for it; b"": do not.

    False where nothing is known of arenas, or the words are more than 512 bytes.
    """
    return burrow_watch() and burrow_end_with(words, len(words), status)


def unused_bytes():
    """Bytes that `give_back` would return."""
    return burrow_unused(False)


def give_back():
    """Return the pages of free pools to the system; gives how many bytes that was. Takes 5 ms for the tuples first."""
    if burrow_watch():
        burrow_let_go_of_tuples()
    return burrow_unused(True)
