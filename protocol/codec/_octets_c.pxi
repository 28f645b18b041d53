# Numbers in network order, read and written in place. Nobody here knows where the octets end: callers test that first.


cdef extern from *:
    """
    #include <stdint.h>
    #include <string.h>
    static inline uint16_t burrow_u16(const uint8_t *p) {
        return (uint16_t)((p[0] << 8) | p[1]);
    }
    static inline uint32_t burrow_u32(const uint8_t *p) {
        return ((uint32_t)p[0] << 24) | ((uint32_t)p[1] << 16) | ((uint32_t)p[2] << 8) | p[3];
    }
    static inline uint64_t burrow_u64(const uint8_t *p) {
        return ((uint64_t)burrow_u32(p) << 32) | burrow_u32(p + 4);
    }
    static inline void burrow_put16(uint8_t *p, uint32_t v) {
        p[0] = (uint8_t)(v >> 8); p[1] = (uint8_t)v;
    }
    static inline void burrow_put32(uint8_t *p, uint32_t v) {
        burrow_put16(p, v >> 16); burrow_put16(p + 2, v);
    }
    static inline void burrow_put64(uint8_t *p, uint64_t v) {
        burrow_put32(p, (uint32_t)(v >> 32)); burrow_put32(p + 4, (uint32_t)v);
    }
    """
    uint16_t u16 "burrow_u16"(const uint8_t *p) nogil
    uint32_t u32 "burrow_u32"(const uint8_t *p) nogil
    uint64_t u64 "burrow_u64"(const uint8_t *p) nogil
    void put16 "burrow_put16"(uint8_t *p, uint32_t value) nogil
    void put32 "burrow_put32"(uint8_t *p, uint32_t value) nogil
    void put64 "burrow_put64"(uint8_t *p, uint64_t value) nogil


cdef extern from *:
    int __builtin_clz(unsigned int value) nogil
