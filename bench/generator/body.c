#include "load.h"

#include <string.h>

enum { PERIOD = 251, PATTERN = 1 << 20 };
static uint8_t pattern[PATTERN + PERIOD];

static const uint8_t *pattern_at(uint32_t offset)
{
    static atomic_int filled;
    if (!atomic_load(&filled)) { /* every thread would write the same octets */
        for (uint32_t i = 0; i < PATTERN + PERIOD; i++)
            pattern[i] = (uint8_t)(i % PERIOD);
        atomic_store(&filled, 1);
    }
    return pattern + offset % PERIOD;
}

void body_fill(uint8_t *body, uint32_t size, uint64_t label)
{
    for (uint32_t done = 0; done < size;) {
        uint32_t part = size - done < PATTERN ? size - done : PATTERN;
        memcpy(body + done, pattern_at(done), part);
        done += part;
    }
    if (size >= 8) {
        label = __builtin_bswap64(label);
        memcpy(body, &label, 8);
    }
}

void body_check(const uint8_t *part, uint32_t offset, uint32_t length)
{
    uint32_t skip = offset < 8 ? 8 - offset : 0;
    if (skip >= length)
        return;
    for (uint32_t done = skip; done < length;) {
        uint32_t piece = length - done < PATTERN ? length - done : PATTERN;
        if (memcmp(part + done, pattern_at(offset + done), piece) != 0)
            die("a body differs from what was published near octet %u", offset + done);
        done += piece;
    }
}
