"""burrowmq.broker.definitions.parameters: what operators set is a row, is in force, and comes back."""

from __future__ import annotations

import pytest

from burrowmq.broker.definitions import parameters
from burrowmq.broker.definitions import restore as definitions
from burrowmq.broker.definitions.parameters import Parameters
from burrowmq.broker.queue.rules.settings import QueueDeclaration
from burrowmq.broker.rules.auth import Auth
from burrowmq.broker.rules.parameter_rules import RefusedValue, ValidationFailed, make_policy
from burrowmq.broker.rules.policy import Policy
from burrowmq.broker.vhost.vhost import Vhost
from burrowmq.protocol.codec import body_bytes
from tests.support.bench.broker import BrokerBench
from tests.support.messages import message
from tests.support.topology import CountingEntropy, KeptDefinitions, KeptEngine, make_vhost


def policy(name: str = "p", *, is_operator: bool = False, **definition: object) -> Policy:
    keys = {key.replace("_", "-"): value for key, value in definition.items()}
    return make_policy(name, {"pattern": "^q", "definition": keys}, is_operator=is_operator)


def restored(engine: KeptEngine) -> tuple[dict[str, Vhost], Parameters]:
    """What a node finds that starts with these rows."""
    vhosts = {"/": make_vhost()}
    found = Parameters(KeptDefinitions())
    auth = Auth(KeptDefinitions(), CountingEntropy())
    rows = engine.definitions.as_list()
    assert definitions.restore(rows, vhosts, auth, make_vhost, found) == []
    return vhosts, found


def test_a_policy_is_a_row_and_in_force() -> None:
    engine = KeptEngine()
    vhost = make_vhost(engine=engine)
    queue = vhost.declare_queue(QueueDeclaration(name="q"))
    assert parameters.set_policy(vhost, policy(max_length=5))
    assert queue.settings.max_length == 5
    assert not parameters.set_policy(vhost, policy(max_length=4)), "known, and replaced"
    assert queue.settings.max_length == 4
    vhosts, _ = restored(engine)
    assert vhosts["/"].policies.policies == {"p": policy(max_length=4)}
    assert parameters.clear_policy(vhost, "p")
    assert queue.settings.max_length is None
    assert not parameters.clear_policy(vhost, "p")
    assert engine.definitions.of("policy") == []


def test_both_kinds_may_have_the_same_name() -> None:
    engine = KeptEngine()
    vhost = make_vhost(engine=engine)
    parameters.set_policy(vhost, policy(max_length=5))
    operator = policy(is_operator=True, max_length=3)
    parameters.set_policy(vhost, operator, is_operator=True)
    vhosts, _ = restored(engine)
    assert vhosts["/"].policies.policies["p"].definition == {"max-length": 5}
    assert vhosts["/"].policies.operator_policies["p"] == operator
    assert vhosts["/"].effective_settings("q", {}).max_length == 3


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
    engine = KeptEngine()
    vhost = make_vhost(engine=engine)
    parameters.set_policy(vhost, policy(max_length=5))
    parameters.set_vhost_limits(vhost, {"max-queues": 1})
    staged = vhost.rows.staged
    assert not parameters.set_policy(vhost, policy(max_length=5))
    assert not parameters.set_vhost_limits(vhost, {"max-queues": 1})
    assert vhost.rows.staged == staged


def test_limits_come_back_and_go() -> None:
    engine = KeptEngine()
    vhost = make_vhost(engine=engine)
    parameters.set_vhost_limits(vhost, {"max-queues": 1})
    assert restored(engine)[0]["/"].limits == {"max-queues": 1}
    parameters.set_vhost_limits(vhost, {})
    assert engine.definitions.of("parameter") == []


def test_global_parameters() -> None:
    engine = KeptEngine()
    found = Parameters(engine.definitions)
    assert found.put("gp", {"a": [1]})
    assert not found.put("gp", 2)
    assert restored(engine)[1].values == {"gp": 2}
    assert found.remove("gp")
    assert not found.remove("gp")
    assert engine.definitions.of("parameter") == []


def test_parameters_by_component() -> None:
    vhost = make_vhost()
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
    engine = KeptEngine()
    vhost = make_vhost(engine=engine)
    parameters.set_policy(vhost, policy(max_length=5))
    parameters.set_policy(vhost, policy("o", max_length=5), is_operator=True)
    parameters.set_vhost_limits(vhost, {"max-queues": 1})
    parameters.forget_vhost(vhost)
    assert engine.definitions.rows == {}
