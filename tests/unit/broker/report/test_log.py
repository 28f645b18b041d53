"""LogObserver: one line an event, fixed keys, nothing a peer sent can forge a line."""

from __future__ import annotations

import inspect
import io
import json

import pytest

from burrowmq.broker.report.log import LogObserver, make_logger
from burrowmq.broker.report.observer import Observer
from burrowmq.storage.types import StoreObserver


def lines(fmt: str, act, level: str = "debug") -> list[str]:
    stream = io.StringIO()
    act(LogObserver(make_logger(level, fmt, stream)))
    return stream.getvalue().splitlines()


@pytest.mark.parametrize("protocol", [Observer, StoreObserver])
def test_every_event_has_a_line(protocol):
    samples = {
        "str": "text",
        "int": 1,
        "int | None": None,
        "float": 0.5,
        "bool": True,
        "BaseException": ValueError("wrong"),
    }
    for name, method in inspect.getmembers(protocol, inspect.isfunction):
        if name.startswith("_"):
            continue
        parameters = list(inspect.signature(method).parameters.values())[1:]
        arguments = [samples[each.annotation] for each in parameters]
        found = lines("json", lambda o, n=name, a=arguments: getattr(o, n)(*a))
        assert len(found) == 1, name
        event = json.loads(found[0])
        assert event["level"] in {"debug", "info", "warning", "error", "critical"}
        assert event["event"]


def test_a_level_leaves_out_what_is_below():
    assert lines("plain", lambda o: o.connection_accepted("c"), "info") == []
    assert len(lines("plain", lambda o: o.alarm_set("memory", "all of it"), "warning")) == 1
    assert lines("plain", lambda o: o.store_failed("x"), "none") == []


def test_the_ready_line_is_the_one_that_scripts_wait_for():
    (line,) = lines("plain", lambda o: o.node_started("rabbit@h", "compiled", 0.25))
    assert "[info] Server startup complete node=rabbit@h codec=compiled seconds=0.25" in line


def test_a_change_has_its_body_where_there_is_one():
    (line,) = lines("plain", lambda o: o.change_made("bob", "POST", "/a", '{"enabled": true}'))
    assert line.endswith("""change_made user=bob method=POST path=/a body='{"enabled": true}'""")
    (line,) = lines("plain", lambda o: o.change_made("bob", "PUT", "/a", ""))
    assert line.endswith("change_made user=bob method=PUT path=/a")


def test_names_from_outside_stay_on_their_line():
    forged = "q\n2026-01-01 [error] forged"
    (line,) = lines("plain", lambda o: o.dead_letter_cycle_cut("/", forged))
    assert "queue='q\\\\n2026-01-01 [error] forged'" in line
    (line,) = lines("plain", lambda o: o.dead_letter_cycle_cut("/", ""))
    assert "queue='' text=" in line


def test_a_clean_close_is_information_and_another_a_warning():
    (clean,) = lines("plain", lambda o: o.connection_closed("c", "u", "/", ""))
    (other,) = lines("plain", lambda o: o.connection_closed("c", "u", "/", "reset"))
    assert "[info]" in clean
    assert "[warning]" in other


def test_a_bug_has_its_traceback():
    def fail(observer: LogObserver) -> None:
        try:
            raise KeyError("gone")
        except KeyError as error:
            observer.bug_found("c", error)

    found = lines("plain", fail)
    assert "bug_found connection=c" in found[0]
    assert any("KeyError: 'gone'" in line for line in found)


def test_the_lines_about_http_listeners_are_rabbitmqs():
    (line,) = lines(
        "plain", lambda o: o.http_listener_started("Management plugin", "[::]:1", False)
    )
    assert line.endswith("Management plugin: HTTP (non-TLS) listener started on [::]:1")


def test_the_end_of_a_full_disk_is_no_error():
    found = lines("json", lambda o: o.space_exhausted("0.qi: pwrite failed: full (ENOSPC)", True))
    found += lines("json", lambda o: o.space_exhausted("", False))
    kept = [json.loads(line) for line in found]
    assert [(each["level"], each["event"], each.get("reason")) for each in kept] == [
        ("error", "space_exhausted", "0.qi: pwrite failed: full (ENOSPC)"),
        ("warning", "space_exhausted_over", None),
    ]


def test_a_message_that_was_set_aside_is_told_with_its_queue():
    found = lines(
        "json", lambda o: o.message_set_aside("/", "orders", 49, "4f.49.1.msg", "no record")
    )
    event = json.loads(found[0])
    kept = [event[key] for key in ("vhost", "queue", "id", "quarantine", "reason")]
    assert kept == ["/", "orders", 49, "4f.49.1.msg", "no record"]
