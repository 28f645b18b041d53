# Included at the top of each compiled module: one that is older than its source says so when it is imported.
#
# setup.py puts the CRC-32 of the source (this file and the parts in its folder included) into the module. In a checkout the source lies beside it, and
# after a pull or an edit it may be a newer one; running on would end in wrong arguments or worse. Where the source is not
# there, or is the one that was compiled (an installed package), nothing happens. State: none.

cdef extern from *:
    """
    #ifndef BURROWMQ_SOURCE_CRC
    #define BURROWMQ_SOURCE_CRC -1
    #endif
    """
    long long BURROWMQ_SOURCE_CRC


def _refuse_stale(str module, str file):
    """Raise RuntimeError when the module's source is there and is not what was compiled."""
    import os
    import zlib

    directory = os.path.dirname(os.path.realpath(file))
    source = os.path.join(directory, module.rpartition(".")[2] + ".pyx")
    stamp = os.path.join(os.path.dirname(os.path.dirname(directory)), "build_stamp.pxi")
    if BURROWMQ_SOURCE_CRC < 0 or not os.path.exists(source) or not os.path.exists(stamp):
        return
    crc = 0
    parts = sorted(name for name in os.listdir(directory) if name.endswith(".pxi"))
    for path in (stamp, *[os.path.join(directory, name) for name in parts], source):
        with open(path, "rb") as stream:
            crc = zlib.crc32(stream.read(), crc)
    if crc != BURROWMQ_SOURCE_CRC:
        raise RuntimeError(f"{file} was compiled from another {source}: run `make build` (or set BURROWMQ_PURE=1)")


_refuse_stale(__name__, __file__)
