"""Two functions of Erlang's that hash exchanges place messages by, so that a key goes where RabbitMQ sends it.

`hash_octets` is what `phash2` does with a binary (`broker.words.phash2` has the other terms). `jump` is the jump
consistent hash of Lamping and Veach with the generator that RabbitMQ's plugin gives it: Erlang's `exs1024s`,
seeded with the key three times. Owns no state. The compiled codec has its own.

Sources: erts/emulator/beam/utils.c (block_hash), lib/stdlib/src/rand.erl, "A Fast, Minimal Memory, Consistent Hash
Algorithm" (2014), RabbitMQ's rabbit_exchange_type_consistent_hash.
"""

from __future__ import annotations

from typing import Final

GOLDEN: Final = 0x9E3779B9
_MASK21: Final = (1 << 21) - 1
_MASK32: Final = (1 << 32) - 1
_MASK39: Final = (1 << 39) - 1
_MASK64: Final = (1 << 64) - 1


def mix(a: int, b: int, c: int) -> tuple[int, int, int]:
    """Three words of 32 bits after Jenkins' mix of 1997."""
    a = (a - b - c & _MASK32) ^ c >> 13
    b = (b - c - a ^ a << 8) & _MASK32
    c = (c - a - b & _MASK32) ^ b >> 13
    a = (a - b - c & _MASK32) ^ c >> 12
    b = (b - c - a ^ a << 16) & _MASK32
    c = (c - a - b & _MASK32) ^ b >> 5
    a = (a - b - c & _MASK32) ^ c >> 3
    b = (b - c - a ^ a << 10) & _MASK32
    return a, b, (c - a - b & _MASK32) ^ b >> 15


def hash_octets(octets: bytes, seed: int) -> int:
    """The 32-bit hash of octets, in a chain of hashes that is at `seed`."""
    size = len(octets)
    if not size:
        return seed & _MASK32
    a = b = GOLDEN
    c = seed & _MASK32
    whole = size - size % 12
    word = int.from_bytes
    for at in range(0, whole, 12):
        a, b, c = mix(
            a + word(octets[at : at + 4], "little") & _MASK32,
            b + word(octets[at + 4 : at + 8], "little") & _MASK32,
            c + word(octets[at + 8 : at + 12], "little") & _MASK32,
        )
    a += word(octets[whole : whole + 4], "little")
    b += word(octets[whole + 4 : whole + 8], "little")
    # The lowest octet of the last word is the length's.
    c += size + (word(octets[whole + 8 :], "little") << 8)
    return mix(a & _MASK32, b & _MASK32, c & _MASK32)[2]


def jump(key: int, bucket_count: int) -> int:
    """The bucket, from 0, of a key that is not negative; when one more comes, each key stays or goes to that one."""
    if bucket_count == 1:
        return 0
    state = _seeded(key)
    bucket, following, at = -1, 0, 0
    while following < bucket_count:
        bucket = following
        # xorshift1024*
        last = state[at]
        at = at + 1 & 15
        drawn = state[at]
        drawn ^= drawn << 31 & _MASK64
        state[at] = drawn = drawn ^ drawn >> 11 ^ last ^ last >> 30
        uniform = (drawn * 1181783497276652981 & _MASK64) >> 11
        following = int((bucket + 1) / (uniform * 2.0**-53)) if uniform else bucket_count
    return bucket


def _seeded(key: int) -> list[int]:
    """The generator's state for a key: 16 numbers of xorshift64*, the first one last."""
    low = (key & _MASK21) + 1
    parts = [low * factor & _MASK21 for factor in (2097131, 2097133, 2097143)]
    number = parts[0] << 43 | parts[1] << 22 | parts[2] << 1 | 1
    state = []
    for _ in range(16):
        number ^= number >> 12
        number ^= (number & _MASK39) << 25
        number ^= number >> 27
        state.append(number * 2685821657736338717 & _MASK64)
    state.reverse()
    return state
