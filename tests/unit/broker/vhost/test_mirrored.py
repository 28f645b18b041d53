"""burrowmq.broker.vhost.mirrored: policies of mirroring warn, or make new queues quorum queues that clients find again."""

from __future__ import annotations

from typing import Any

import pytest
from pika import spec
from pika.spec import Queue as Methods

from burrowmq.broker.definitions import parameters
from burrowmq.broker.definitions.document import ImportRefused, import_document
from burrowmq.broker.rules.parameter_rules import make_policy
from tests.support.bench.broker import BrokerBench
from tests.support.bench.client import Client
from tests.support.cluster_bench import ClusterBench
from tests.support.front_ends_bench import FrontEnds, say

HA: dict[str, Any] = {"ha-mode": "exactly", "ha-params": 2, "ha-sync-mode": "automatic"}
INEQUIVALENT = (
    "PRECONDITION_FAILED - inequivalent arg 'x-queue-type' for queue 'q' in vhost '/': received none but current is"
    " the value 'quorum' of type 'longstr'"
)


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> ClusterBench:
    """With `cluster.mirrored = quorum`."""
    return ClusterBench(monkeypatch, mirrored="quorum")


def set_policy(
    bench: BrokerBench,
    name: str = "ha",
    *,
    apply_to: str = "all",
    is_operator: bool = False,
    pattern: str = "^q",
    **more: Any,
) -> None:
    """`more` are other keys of its definition than those of mirroring."""
    definition = HA | {key.replace("_", "-"): value for key, value in more.items()}
    document = {"pattern": pattern, "definition": definition, "apply-to": apply_to}
    policy = make_policy(name, document, is_operator=is_operator)
    bench.perform(lambda: parameters.set_policy(bench.vhost, policy, is_operator=is_operator))


def declare(bench: BrokerBench, name: str = "q", client: Client | None = None, **asked: Any) -> Any:
    """The answer; `asked` are properties and `arguments`."""
    client = client or bench.connect(1)
    asked = {"durable": True, **asked}
    say(client, Methods.Declare(queue=name, **asked))
    if isinstance(bench, ClusterBench):
        bench.settle()
    else:
        bench.commit()
    ((_, answer),) = client.read()
    return answer


def told(bench: BrokerBench) -> list[tuple[Any, ...]]:
    """What operators were warned of."""
    return [
        *bench.observer.named("policy_without_effect"),
        *bench.observer.named("queue_not_mirrored"),
    ]


# -- what operators are told -------------------------------------------------------------------------------------------


def test_without_a_cluster_a_policy_warns_once_and_queues_are_classic() -> None:
    bench = BrokerBench()
    set_policy(bench)
    set_policy(bench)  # the same again is no change
    ((vhost, policy, reason),) = told(bench)
    assert (vhost, policy) == ("/", "policy ha")
    assert reason == (
        "ha-mode, ha-params, ha-sync-mode: queues lie on this node alone;"
        " cluster.urls names servers that keep quorum queues"
    )
    declare(bench)
    assert bench.vhost.queues["q"].kind == "classic"
    assert "x-queue-type" not in bench.vhost.queues["q"].arguments


def test_operator_policies_warn_and_others_do_not() -> None:
    bench = BrokerBench()
    set_policy(bench, is_operator=True)
    other = make_policy("p", {"pattern": "^q", "definition": {"max-length": 3}})
    bench.perform(lambda: parameters.set_policy(bench.vhost, other))
    assert [policy for _, policy, _ in told(bench)] == ["operator policy ha"]


def test_those_of_a_document_and_of_a_parameter_warn() -> None:
    bench = BrokerBench()
    value = {"pattern": "^q", "definition": {"ha-mode": "all"}}
    document = {
        "parameters": [{"vhost": "/", "component": "operator_policy", "name": "o", "value": value}],
        "policies": [{"vhost": "/", "name": "p", **value}],
    }
    bench.perform(lambda: import_document(bench, document))
    assert [policy for _, policy, _ in told(bench)] == ["operator policy o", "policy p"]


def test_a_cluster_without_the_setting_names_the_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = ClusterBench(monkeypatch)
    set_policy(bench)
    ((_, _, reason),) = told(bench)
    assert "cluster.mirrored = quorum" in reason
    assert "burrowctl migrate_queues" in reason
    declare(bench)
    assert bench.vhost.queues["q"].kind == "classic"


def test_with_the_setting_only_a_policy_for_no_classic_queue_warns(bench: ClusterBench) -> None:
    set_policy(bench)
    assert not told(bench)
    set_policy(bench, "other", apply_to="quorum_queues")
    ((_, _, reason),) = told(bench)
    assert reason.endswith("classic queues are what is mirrored, it applies to quorum_queues")


# -- what becomes of a new queue ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("apply_to", ["all", "queues", "classic_queues"])
@pytest.mark.parametrize("is_operator", [False, True])
@pytest.mark.parametrize("default", ["", "classic", "quorum"])
def test_a_new_queue_is_a_quorum_queue(
    bench: ClusterBench, apply_to: str, is_operator: bool, default: str
) -> None:
    bench.vhost.default_queue_type = default
    set_policy(bench, apply_to=apply_to, is_operator=is_operator)
    assert isinstance(declare(bench), Methods.DeclareOk)
    queue = bench.vhost.queues["q"]
    assert (queue.kind, queue.arguments) == ("quorum", {"x-queue-type": "quorum"})
    assert not told(bench)


@pytest.mark.parametrize(
    "asked",
    [
        {"durable": False},
        {"exclusive": True},
        {"auto_delete": True},
        {"name": ""},
        {"name": "other"},
    ],
    ids=str,
)
def test_what_does_not_last_or_does_not_match_is_classic(
    bench: ClusterBench, asked: dict[str, Any]
) -> None:
    set_policy(bench, pattern="^(q|amq)")
    answer = declare(bench, **asked)
    assert bench.vhost.queues[answer.queue].kind == "classic"
    assert not told(bench)


@pytest.mark.parametrize("default", ["classic", "stream"])
def test_a_named_type_holds(bench: ClusterBench, default: str) -> None:
    bench.vhost.default_queue_type = default
    set_policy(bench)
    declare(bench, "q1", arguments={"x-queue-type": "classic"})
    declare(bench, "q2", arguments={"x-queue-type": "quorum"})
    declare(bench, "q3", arguments={"x-queue-type": "stream"})
    kinds = [bench.vhost.queues[name].kind for name in ("q1", "q2", "q3")]
    assert kinds == ["classic", "quorum", "stream"]
    assert told(bench) == [("/", "q1", "its declaration has x-queue-type: classic")]


def test_a_default_that_is_no_classic_queue_holds(bench: ClusterBench) -> None:
    bench.vhost.default_queue_type = "stream"
    set_policy(bench)
    declare(bench)
    assert bench.vhost.queues["q"].kind == "stream"


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"x-max-priority": 5}, "invalid arg 'x-max-priority' for queue 'q' in vhost '/'"),
        ({"x-overflow": "reject-publish-dlx"}, "a quorum queue takes reject-publish-dlx for drop"),
    ],
    ids=str,
)
def test_what_a_quorum_queue_cannot_be_stays_classic_and_warns(
    bench: ClusterBench, arguments: dict[str, Any], reason: str
) -> None:
    set_policy(bench)
    assert isinstance(declare(bench, arguments=arguments), Methods.DeclareOk)
    assert bench.vhost.queues["q"].kind == "classic"
    ((vhost, queue, found),) = told(bench)
    assert (vhost, queue) == ("/", "q")
    assert found.startswith(reason)


def test_what_a_policy_wants_of_classic_queues_alone_does_so_too(bench: ClusterBench) -> None:
    set_policy(bench, overflow="reject-publish-dlx", max_length=3)
    declare(bench)
    assert bench.vhost.queues["q"].kind == "classic"
    ((_, _, reason),) = told(bench)
    assert reason == "a quorum queue takes reject-publish-dlx for drop-head"


def test_a_policys_word_holds_for_quorum_queues_alone(bench: ClusterBench) -> None:
    set_policy(bench, overflow="reject-publish-dlx", max_length=3)
    declare(bench, arguments={"x-overflow": "reject-publish"})
    assert bench.vhost.queues["q"].kind == "classic"
    ((_, _, reason),) = told(bench)
    assert reason == "a quorum queue takes reject-publish-dlx for drop-head"


def test_how_a_classic_queue_keeps_messages_is_no_obstacle(bench: ClusterBench) -> None:
    set_policy(bench)
    asked = {"x-queue-mode": "lazy", "x-queue-version": 2, "x-queue-master-locator": "min-masters"}
    declare(bench, arguments={**asked, "x-max-length": 9})
    queue = bench.vhost.queues["q"]
    assert queue.arguments == {"x-max-length": 9, "x-queue-type": "quorum"}
    assert isinstance(declare(bench, arguments={**asked, "x-max-length": 9}), Methods.DeclareOk)


def test_what_no_queue_may_have_is_refused_in_the_same_words(bench: ClusterBench) -> None:
    set_policy(bench)
    for arguments in ({"x-message-ttl": -1}, {"x-delivery-limit": 3}):
        refusals = [declare(bench, name, arguments=arguments) for name in ("q", "other")]
        first, second = (each.reply_text.replace("'other'", "'q'") for each in refusals)
        assert first == second
        assert refusals[0].reply_code == 406
    assert not told(bench)


# -- who declares it again, and what is there --------------------------------------------------------------------------


def test_who_declares_it_again_finds_it_also_when_the_policy_is_gone(bench: ClusterBench) -> None:
    set_policy(bench)
    declare(bench, arguments={"x-max-length": 9})
    bench.perform(lambda: parameters.clear_policy(bench.vhost, "ha"))
    for kind in ({}, {"x-queue-type": "classic"}, {"x-queue-type": "quorum"}):
        answer = declare(bench, arguments={"x-max-length": 9, **kind})
        assert isinstance(answer, Methods.DeclareOk), kind
    refused = declare(bench)
    assert (refused.reply_code, "x-max-length" in refused.reply_text) == (406, True)


def test_a_queue_that_is_there_stays_classic(bench: ClusterBench) -> None:
    declare(bench)
    set_policy(bench)
    assert isinstance(declare(bench), Methods.DeclareOk)
    assert bench.vhost.queues["q"].kind == "classic"


def test_a_restart_remembers_how_it_was_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    ends = FrontEnds(monkeypatch)
    one = ends.start(mirrored="quorum")
    set_policy(one, message_ttl=60_000)
    assert isinstance(declare(one), Methods.DeclareOk)
    again = ends.start(ends.rows(one))  # without the setting
    assert again.vhost.queues["q"].settings.message_ttl_ms == 60_000
    assert isinstance(declare(again), Methods.DeclareOk)


def test_other_front_ends_know_and_store_how_it_was_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ends = FrontEnds(monkeypatch)
    one, two = (ends.start(mirrored="quorum") for _ in range(2))
    set_policy(one, message_ttl=60_000)
    ends.settle()
    assert isinstance(declare(one), Methods.DeclareOk)
    ends.settle()
    assert two.vhost.queues["q"].kind == "quorum"
    assert two.vhost.queues["q"].settings.message_ttl_ms == 60_000
    assert isinstance(declare(two), Methods.DeclareOk)
    (row,) = [row for kind, _, row in ends.rows(two) if kind == "queue"]
    assert "former_arguments" in row


def test_two_front_ends_at_once_make_one(monkeypatch: pytest.MonkeyPatch) -> None:
    ends = FrontEnds(monkeypatch)
    one, two = (ends.start(mirrored="quorum") for _ in range(2))
    set_policy(one)
    ends.settle()
    clients = [bench.connect(1) for bench in (one, two)]
    for client in clients:
        say(client, Methods.Declare(queue="q", durable=True))
    ends.settle(1)
    for client in clients:
        ((_, answer),) = client.read()
        assert isinstance(answer, Methods.DeclareOk)


def test_a_quorum_queue_that_somebody_named_is_no_classic_one(bench: ClusterBench) -> None:
    declare(bench, arguments={"x-queue-type": "quorum"})
    set_policy(bench, message_ttl=60_000)
    assert declare(bench).reply_text == INEQUIVALENT
    assert bench.vhost.queues["q"].settings.message_ttl_ms is None  # as in RabbitMQ


# -- policies of such a queue ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("apply_to", ["all", "classic_queues"])
def test_what_else_the_policy_says_is_in_force(bench: ClusterBench, apply_to: str) -> None:
    set_policy(bench, apply_to=apply_to, message_ttl=60_000, queue_mode="lazy")
    declare(bench)
    queue = bench.vhost.queues["q"]
    assert queue.kind == "quorum"
    assert queue.settings.message_ttl_ms == 60_000
    assert bench.vhost.effective_policy(queue).policy == "ha"
    set_policy(bench, apply_to=apply_to, message_ttl=5_000)
    assert queue.settings.message_ttl_ms == 5_000


def test_once_deleted_another_one_of_its_name_is_its_own(bench: ClusterBench) -> None:
    set_policy(bench)
    client = bench.connect(1)
    declare(bench, client=client)
    say(client, spec.Queue.Delete(queue="q"))
    bench.settle()
    declare(bench, arguments={"x-queue-type": "quorum"})
    assert not bench.vhost.former_arguments


# -- definitions -------------------------------------------------------------------------------------------------------


def document(*queues: dict[str, Any]) -> dict[str, Any]:
    policy = {"vhost": "/", "name": "ha", "pattern": "^q", "definition": HA}
    return {
        "policies": [policy],
        "queues": [{"vhost": "/", "durable": True, **queue} for queue in queues],
    }


def test_queues_of_a_document_are_made_so(bench: ClusterBench) -> None:
    found = document(
        {"name": "q1", "type": "classic", "arguments": {}},
        {"name": "q2", "arguments": {"x-queue-type": "classic"}},
        {"name": "q3", "auto_delete": True},
        {"name": "other"},
    )
    bench.perform(lambda: import_document(bench, found))
    kinds = [bench.vhost.queues[name].kind for name in ("q1", "q2", "q3", "other")]
    assert kinds == ["quorum", "classic", "classic", "classic"]
    before = [*bench.vhost.queues.values()]
    bench.perform(lambda: import_document(bench, found))
    assert [*bench.vhost.queues.values()] == before


def test_a_document_may_be_taken_over_so_whatever_its_queues_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench = ClusterBench(monkeypatch)  # without the setting
    monkeypatch.setattr(bench, "has_cluster", True)
    found = document({"name": "q", "arguments": {"x-queue-type": "classic", "x-max-length": 2}})
    bench.perform(lambda: import_document(bench, found, is_mirrored_quorum=True))
    assert bench.vhost.queues["q"].arguments == {"x-queue-type": "quorum", "x-max-length": 2}
    assert isinstance(declare(bench, arguments={"x-max-length": 2}), Methods.DeclareOk)


def test_without_a_cluster_a_document_cannot_be_taken_over_so() -> None:
    bench = BrokerBench()
    with pytest.raises(ImportRefused, match=r"cluster\.urls is not set"):
        import_document(bench, document({"name": "q"}), is_mirrored_quorum=True)
    assert not bench.vhost.policies.policies


def test_a_queue_of_which_a_start_has_kept_messages_is_declared_as_what_it_was(
    bench: ClusterBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Clients declare it as ever: it is there again, and has what was kept."""
    set_policy(bench)
    monkeypatch.setattr(bench.engine, "kept_level", lambda *_: 0)
    assert declare(bench).NAME == "Queue.DeclareOk"
    assert bench.vhost.queues["q"].kind == "classic"
    assert told(bench) == [("/", "q", "messages of the classic queue of its name are kept")]
