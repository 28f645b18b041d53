"""burrowmq.broker.words.phash2: what Erlang/OTP 25 answers to the same terms."""

from __future__ import annotations

import pytest

from burrowmq.broker.words.phash2 import UNDEFINED, Atom, field_term, phash2
from burrowmq.protocol.table import DecimalValue, Long


@pytest.mark.parametrize(
    ("term", "expected"),
    [
        (b"", 13708901), (b"k0", 92414295), ([b"k0"], 91343558), ([], 113427502),
        ([b"k0", b"abcdefghijklmnopqrstuvwxyz"], 21339583), (UNDEFINED, 45914356),
        (1, 2614250), (-1, 44071773), (0, 88723725), (True, 506293), (False, 7111573),
        (1.5, 10380315), (5_000_000_000, 84326241), (-5_000_000_000, 43005562),
        (1 << 27, 12354923), (-(1 << 27), 69672967), ((1 << 27) - 1, 112602999),
        (1 << 64, 103122609), (123456789012345678901234, 48549920),
        ([(b"a", Atom("longstr"), b"b")], 2342344),
    ],
)  # fmt: skip
def test_terms(term, expected) -> None:
    assert phash2(term) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("a", 65711459), (Long(300), 112569195), (-300, 76331877), (True, 32030443),
        (None, 27077197), ({"k": "v"}, 95356243), ([], 86211673), ({}, 80606520),
        (DecimalValue(1, 15), 102737922), (1.5, 115320697), (["a", Long(1)], 76538750),
    ],
)  # fmt: skip
def test_header_values_have_their_type(value, expected) -> None:
    assert phash2(field_term(value)) == expected
