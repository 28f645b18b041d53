from __future__ import annotations

import pytest

from burrowmq.broker.shovel.definition import read

ENDS = {"src-uri": "amqp://", "src-queue": "q", "dest-uri": ["amqp://h", "amqp:///w"]}


def test_what_is_not_said_is_rabbitmq_s_default() -> None:
    found = read("s", "v", ENDS)
    assert found.ack_mode == "on-confirm"
    assert (found.source.prefetch_count, found.reconnect_delay_s) == (1000, 5)
    assert (found.source.delete_after, found.source.is_deleted_after_length) == (None, False)
    assert [target.vhost for target in found.source.targets] == ["/"]
    assert [target.vhost for target in found.destination.targets] == ["/", "w"]
    assert not found.destination.changes_headers


def test_the_longer_of_two_names_counts() -> None:
    value = {**ENDS, "prefetch-count": 5, "src-prefetch-count": 6, "delete-after": 7}
    found = read("s", "v", value)
    assert (found.source.prefetch_count, found.source.delete_after) == (6, 7)
    assert read("s", "v", {**ENDS, "prefetch-count": -1}).source.prefetch_count == 65535


def test_header_options_of_either_name() -> None:
    for value in (
        {"add-forward-headers": True},
        {"dest-add-timestamp-header": True},
        {"publish-properties": {"app_id": "a"}},
    ):
        assert read("s", "v", {**ENDS, **value}).destination.changes_headers


def test_as_many_as_the_queue_has() -> None:
    assert read(
        "s", "v", {**ENDS, "src-delete-after": "queue-length"}
    ).source.is_deleted_after_length


def test_a_static_one_has_no_virtual_host_and_leads_to_the_default_one() -> None:
    found = read("s", "", ENDS, is_static=True)
    assert found.source.targets[0].vhost == "/"


@pytest.mark.parametrize(
    ("given", "delay_s"), [(3, 3), (0.5, 0.5), (0.001, 0.1), (0, 0), (-1, 0), (-0.5, 0)]
)
def test_a_delay_is_none_or_long_enough(given: float, delay_s: float) -> None:
    """0 stands for no next attempt: see `test_without_a_delay_there_is_no_second_attempt_until_it_is_restarted`."""
    value = {"src-uri": "amqp://", "dest-uri": "amqp://", "reconnect-delay": given}
    assert read("s", "/", value).reconnect_delay_s == delay_s
