"""burrowmq.broker.exchange.binding: identity of an edge."""

from __future__ import annotations

from burrowmq.broker.exchange.binding import Binding, arguments_key, binding_identity
from burrowmq.broker.exchange.direct import DirectExchange
from burrowmq.protocol.table import Long
from tests.support.bench.broker import BrokerBench


def test_identity_is_by_names_key_and_typed_arguments() -> None:
    source, queue = DirectExchange("x"), BrokerBench().queue("q")
    binding = Binding(source, queue, "queue", b"k", {"b": 1, "a": "x"})
    assert binding.identity == binding_identity("queue", "q", b"k", {"a": "x", "b": 1})
    assert binding.identity != binding_identity("exchange", "q", b"k", {"a": "x", "b": 1})
    assert arguments_key({"a": 1}) != arguments_key({"a": Long(1)})
    assert arguments_key({}) == b""
    assert repr(binding) == "Binding('x' -> queue 'q', b'k')"
