"""burrowmq.broker.definitions.parameters: what operators set is a row, is in force, and comes back."""

from __future__ import annotations

import pytest

from burrowmq.broker.definitions import parameters
from burrowmq.broker.queue.rules.settings import QueueDeclaration
from burrowmq.broker.rules.parameter_rules import RefusedValue, ValidationFailed, make_policy
from burrowmq.broker.rules.policy import Policy
from burrowmq.protocol.codec import body_bytes
from tests.support.bench.broker import BrokerBench
from tests.support.messages import message


def policy(name: str = "p", *, is_operator: bool = False, **definition: object) -> Policy:
    keys = {key.replace("_", "-"): value for key, value in definition.items()}
    return make_policy(name, {"pattern": "^q", "definition": keys}, is_operator=is_operator)


def restored(bench: BrokerBench) -> BrokerBench:
    """A node that starts with the rows of this one."""
    found = BrokerBench(bench.engine.definitions.load())
    assert found.unusable == []
    return found


def test_a_policy_is_a_row_and_in_force() -> None:
    bench = BrokerBench()
    vhost, rows = bench.vhost, bench.engine.definitions
    queue = vhost.declare_queue(QueueDeclaration(name="q"))
    assert parameters.set_policy(vhost, policy(max_length=5))
    assert queue.settings.max_length == 5
    assert not parameters.set_policy(vhost, policy(max_length=4)), "known, and replaced"
    assert queue.settings.max_length == 4
    assert restored(bench).vhost.policies.policies == {"p": policy(max_length=4)}
    assert parameters.clear_policy(vhost, "p")
    assert queue.settings.max_length is None
    assert not parameters.clear_policy(vhost, "p")
    assert rows.of("policy") == []


def test_a_policy_that_cannot_be_put_in_force_is_not_half_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench = BrokerBench()
    vhost, rows = bench.vhost, bench.engine.definitions
    parameters.set_policy(vhost, policy(max_length=5))
    before = rows.of("policy")

    def fail(*_: Policy) -> None:
        raise LookupError("a bug")

    monkeypatch.setattr(vhost, "policies_changed", fail)
    for name in ("p", "q"):
        with pytest.raises(LookupError):
            parameters.set_policy(vhost, policy(name, max_length=4))
    assert vhost.policies.policies == {"p": policy(max_length=5)}
    assert rows.of("policy") == before
    assert vhost.settings.of("q", {}).max_length == 5


def test_both_kinds_may_have_the_same_name() -> None:
    bench = BrokerBench()
    vhost = bench.vhost
    parameters.set_policy(vhost, policy(max_length=5))
    operator = policy(is_operator=True, max_length=3)
    parameters.set_policy(vhost, operator, is_operator=True)
    again = restored(bench).vhost
    assert again.policies.policies["p"].definition == {"max-length": 5}
    assert again.policies.operator_policies["p"] == operator
    assert again.settings.of("q", {}).max_length == 3


def test_a_policy_taken_back_while_the_excess_is_read_stays_back() -> None:
    bench = BrokerBench(answers_later=True)
    dead = {"x-dead-letter-exchange": "", "x-queue-mode": "lazy"}
    queue = bench.vhost.declare_queue(QueueDeclaration(name="q", arguments=dead, durable=True))
    run = [message(b"%d" % number, persistent=True) for number in range(50)]
    queue.publish(run, run[0].flags, body_bytes(run))
    bench.run()
    parameters.set_policy(bench.vhost, policy(max_length=10, overflow="reject-publish"))
    parameters.set_policy(bench.vhost, policy(max_length=10, overflow="drop-head"))
    assert queue.ready_count == 50, "what is dropped is being read"
    while bench.engine.reads:
        bench.engine.answer_reads()
        bench.run()
    assert queue.ready_count == 10
    assert queue.settings.overflow == "drop-head"


def test_the_same_again_writes_nothing() -> None:
    bench = BrokerBench()
    vhost, rows = bench.vhost, bench.engine.definitions
    parameters.set_policy(vhost, policy(max_length=5))
    parameters.set_vhost_limits(vhost, {"max-queues": 1})
    staged = list(rows.changes)
    assert not parameters.set_policy(vhost, policy(max_length=5))
    assert not parameters.set_vhost_limits(vhost, {"max-queues": 1})
    assert rows.changes == staged


def test_limits_come_back_and_go() -> None:
    bench = BrokerBench()
    vhost, rows = bench.vhost, bench.engine.definitions
    parameters.set_vhost_limits(vhost, {"max-queues": 1})
    assert restored(bench).vhost.limits == {"max-queues": 1}
    parameters.set_vhost_limits(vhost, {})
    assert rows.of("parameter") == []


def test_global_parameters() -> None:
    bench = BrokerBench()
    found, rows = bench.parameters, bench.engine.definitions
    assert found.put("gp", {"a": [1]})
    assert not found.put("gp", 2)
    assert restored(bench).parameters.values == {"gp": 2}
    assert found.remove("gp")
    assert not found.remove("gp")
    assert rows.of("parameter") == []


def test_parameters_by_component() -> None:
    vhost = BrokerBench().vhost
    document = {"pattern": "^q", "definition": {"max-length": 1}}
    assert parameters.set_parameter(vhost, "operator_policy", "o", document)
    assert vhost.policies.operator_policies["o"].definition == {"max-length": 1}
    assert parameters.set_parameter(vhost, "vhost-limits", "limits", {"max-queues": 1})
    assert vhost.limits == {"max-queues": 1}
    with pytest.raises(ValidationFailed, match="component foo not found"):
        parameters.set_parameter(vhost, "foo", "x", 1)
    with pytest.raises(RefusedValue, match="policies may not be set using this method"):
        parameters.set_parameter(vhost, "policy", "x", document)
    assert parameters.clear_parameter(vhost, "operator_policy", "o")
    assert parameters.clear_parameter(vhost, "vhost-limits", "limits")
    assert not parameters.clear_parameter(vhost, "vhost-limits", "limits")
    with pytest.raises(RefusedValue, match="may not be cleared"):
        parameters.clear_parameter(vhost, "policy", "x")


def test_a_vhost_that_goes_takes_its_rows_along() -> None:
    bench = BrokerBench()
    vhost, rows = bench.vhost, bench.engine.definitions
    parameters.set_policy(vhost, policy(max_length=5))
    parameters.set_policy(vhost, policy("o", max_length=5), is_operator=True)
    parameters.set_vhost_limits(vhost, {"max-queues": 1})
    parameters.forget_vhost(vhost)
    assert rows.of("policy") == rows.of("parameter") == []


@pytest.mark.parametrize(("one", "other"), [(1, True), (1, 1.0), ({"a": [0]}, {"a": [False]})])
def test_a_global_parameter_has_the_value_it_was_given_last(one: object, other: object) -> None:
    bench = BrokerBench()
    for value in (one, other):
        bench.parameters.put("p", value)
    assert repr(bench.parameters.values["p"]) == repr(other)
    assert repr(restored(bench).parameters.values["p"]) == repr(other)


def test_a_policy_has_the_priority_it_was_given_last() -> None:
    bench = BrokerBench()
    for priority in (1, 1.0):
        found = make_policy(
            "p", {"pattern": "q", "definition": {"expires": 1}, "priority": priority}
        )
        parameters.set_policy(bench.vhost, found)
    (kept,) = restored(bench).vhost.policies.policies.values()
    assert repr(kept.priority) == "1.0"
    bench.engine.definitions.changes.clear()
    parameters.set_policy(bench.vhost, found)
    assert bench.engine.definitions.changes == []


def test_a_component_is_told_of_what_python_alone_calls_the_same() -> None:
    bench = BrokerBench()
    told: list[object] = []

    class Listening:
        def check(self, *_: object) -> None:
            pass

        def changed(self, vhost: str, name: str, value: object) -> None:
            told.append((vhost, name, value))

        def cleared(self, vhost: str, name: str) -> None:
            pass

    bench.vhost.components = {"heard": Listening()}
    for value in ({"n": 1}, {"n": True}, {"n": True}):
        parameters.set_parameter(bench.vhost, "heard", "p", value)
    assert repr(told) == "[('/', 'p', {'n': 1}), ('/', 'p', {'n': True})]"
