"""burrowctl import-from between two nodes of ours: what is moved, copied, refused, stopped and gone on with."""

from __future__ import annotations

import contextlib
import json
import sqlite3
import subprocess
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest
from pika import BasicProperties

from burrowmq.broker.imports.journal import Journal
from burrowmq.broker.imports.recognise import SIZE
from tests.crash.moving_in import http
from tests.support.black_box import eventually
from tests.support.broker_process import BURROWCTL, BrokerProcess
from tests.support.two_nodes import Two, asked, channel, drained, publish, wait_for

pytestmark = [pytest.mark.needs_server, pytest.mark.slow]


def rows_of(node: BrokerProcess, kind: str) -> list[dict[str, Any]]:
    """Definitions of a kind as the store of a node that stands still, or not, has them."""
    with contextlib.closing(sqlite3.connect(node.data_dir / "definitions.db")) as store:
        found = store.execute("SELECT value FROM definition WHERE kind = ?", (kind,)).fetchall()
    return [json.loads(value) for (value,) in found]


def test_messages_come_as_they_were(two: Two) -> None:
    source = channel(two.there)
    source.exchange_declare("x", "topic", durable=True)
    source.queue_declare("q", durable=True, arguments={"x-max-priority": 3})
    source.queue_bind("q", "x", "a.#")
    properties = BasicProperties(
        delivery_mode=2, priority=2, headers={"n": 1, "t": {"u": [1, "x"]}}, message_id="m", timestamp=5,
        content_type="text/plain", correlation_id="c", reply_to="r", expiration="90000000", type="t",
        user_id="guest", app_id="a",
    )  # fmt: skip
    source.confirm_delivery()
    source.basic_publish("x", "a.b", b"low", BasicProperties(delivery_mode=2))
    source.basic_publish("x", "a.c", b"high" * 50_000, properties)
    source.connection.close()
    done = two.ctl()
    assert done.returncode == 0, done
    assert "The import has finished: 2 messages are here, 0 are left there" in done.stdout
    (high, found, body), (low, _, _) = drained(two.ours, "q")
    assert (high.exchange, high.routing_key, high.redelivered) == ("x", "a.c", False)
    assert (found.__dict__, body) == (properties.__dict__, b"high" * 50_000)
    assert low.routing_key == "a.b"
    assert drained(two.there, "q") == []
    bound = channel(two.ours)
    bound.basic_publish("x", "a.z", b"bound")
    bound.connection.close()
    assert [body for _, _, body in drained(two.ours, "q")] == [b"bound"]
    assert not (two.ours.data_dir / "import").exists() or not any((two.ours.data_dir / "import").iterdir())  # fmt: skip


def test_persistent_and_transient_messages_of_one_queue_stay_what_they_are(two: Two) -> None:
    """In one batch; the node looks after each turn that its counts are right."""
    found = channel(two.there)
    found.queue_declare("q", durable=True)
    modes = [2, 1, 2, 1, 1, 2]
    found.tx_select()
    for mode in modes:
        found.basic_publish("", "q", b"m", BasicProperties(delivery_mode=mode))
    found.tx_commit()
    found.connection.close()
    assert two.rows()["q"]["moved"] == len(modes)
    (row,) = http(two.ours.management_port, "GET", "queues?columns=messages,messages_persistent")
    assert (row["messages"], row["messages_persistent"]) == (6, 3)
    two.ours.kill()
    two.ours.start()
    assert [found.delivery_mode for _, found, _ in drained(two.ours, "q")] == [2, 2, 2]


def test_some_queues_and_a_dry_run(two: Two) -> None:
    publish(two.there, "orders.1", b"1")
    publish(two.there, "other", b"2")
    publish(two.there, "short", b"3", **{"x-max-length": 5})
    told = two.ctl("--queues", "^orders", "--dry-run")
    assert told.returncode == 0
    assert "orders.1" in told.stdout
    assert "other" not in told.stdout
    assert told.stdout.endswith("1 messages of 1 queues would be moved, 0 of 0 stay there\n")
    told = two.ctl("--keep", "--dry-run")
    assert "orders.1\t1\twould be copied\n" in told.stdout
    assert told.stdout.endswith("2 messages of 2 queues would be copied, 1 of 1 stay there\n")
    rows = two.rows("--queues", "^orders")
    assert list(rows) == ["orders.1"]
    assert (rows["orders.1"]["there"], rows["orders.1"]["moved"], rows["orders.1"]["left"]) == (
        1,
        1,
        0,
    )
    assert [body for _, _, body in drained(two.there, "other")] == [b"2"]


def test_a_copy_leaves_them_there_and_may_be_made_again_or_become_a_move(two: Two) -> None:
    bodies = [b"%d" % number for number in range(2500)]
    publish(two.there, "q", *bodies)
    publish(two.there, "short", b"3", **{"x-max-length": 5})
    rows = two.rows("--keep")
    assert (rows["q"]["moved"], rows["q"]["state"]) == (2500, "done")
    assert "short" not in rows, "what is given back may be dropped there"
    assert two.rows("--keep")["q"]["here"] in (0, 2500)
    assert two.rows()["q"]["again"] == 2500
    assert drained(two.there, "q") == []
    assert [body for _, _, body in drained(two.ours, "q")] == bodies
    assert [body for _, _, body in drained(two.ours, "short")] == [b"3"]


def test_a_queue_that_was_made_again_gets_all_of_it_again(two: Two) -> None:
    bodies = [b"%d" % number for number in range(1200)]
    publish(two.there, "q", *bodies)
    assert two.rows("--keep")["q"]["moved"] == 1200
    found = channel(two.ours)
    found.queue_delete("q")
    found.connection.close()
    row = two.rows()["q"]
    assert (row["moved"], row["again"], row["left"]) == (1200, 0, 0)
    assert [body for _, _, body in drained(two.ours, "q")] == bodies


def test_a_copy_of_which_a_part_is_gone_is_not_taken_for_all_of_it(two: Two) -> None:
    bodies = [b"%d" % number for number in range(20)]
    publish(two.there, "q", *bodies)
    two.rows("--keep")
    found = channel(two.ours)
    for _ in range(5):
        found.basic_get("q", auto_ack=True)
    row = two.rows()["q"]
    assert row["state"] == "failed"
    assert "has 15 of the 20 messages that were copied: purge it" in row["reason"]
    found.queue_purge("q")
    found.connection.close()
    assert two.rows()["q"]["moved"] == 20
    assert [body for _, _, body in drained(two.ours, "q")] == bodies
    assert drained(two.there, "q") == []


def test_a_queue_with_a_single_active_consumer_and_one_with_an_odd_name(two: Two) -> None:
    publish(two.there, "single", b"1", b"2", **{"x-single-active-consumer": True})
    publish(two.there, "an exclusive one", b"3")
    rows = two.rows()
    assert {row["state"] for row in rows.values()} == {"done"}
    assert [body for _, _, body in drained(two.ours, "single")] == [b"1", b"2"]


def test_transient_messages_do_not_come_twice_when_it_is_stopped(two: Two) -> None:
    found = channel(two.there)
    found.queue_declare("q", durable=True)
    found.tx_select()
    for number in range(3000):
        found.basic_publish("", "q", b"%d" % number)
    found.tx_commit()
    found.connection.close()
    process = subprocess.Popen(two.argv("--rate", "2000"), stdout=subprocess.PIPE, text=True)
    wait_for(two, lambda told: told["moved"] >= 1000)
    argv = [str(BURROWCTL), "--data-dir", str(two.ours.data_dir), "import-from", "--stop"]
    subprocess.run(argv, capture_output=True, text=True, check=True)
    process.communicate(timeout=30)
    assert two.rows()["q"]["moved"] == 3000
    assert [body for _, _, body in drained(two.ours, "q")] == [b"%d" % n for n in range(3000)]


def test_alike_messages_are_not_lost_while_somebody_publishes(two: Two) -> None:
    """It is stopped and gone on with all the time; what looks like what is here may come twice, never be lost."""
    publish(two.there, "q", *[b"ping"] * 1500)
    published = 1500
    for _ in range(2):
        process = subprocess.Popen(two.argv("--rate", "1500"), stdout=subprocess.PIPE, text=True)
        wait_for(two, lambda told: told["state"] == "running" and told["moved"] > 0)
        argv = [str(BURROWCTL), "--data-dir", str(two.ours.data_dir), "import-from", "--stop"]
        subprocess.run(argv, capture_output=True, text=True, check=True)
        process.communicate(timeout=30)
        publish(two.there, "q", *[b"ping"] * 700)
        published += 700
    done = two.ctl()
    assert "done: messages that are alike may be here twice" in done.stdout
    assert (asked(two)["state"], asked(two)["left"]) == ("finished", 0)
    assert len(drained(two.ours, "q")) >= published


def test_it_is_slowed_stopped_and_gone_on_with(two: Two) -> None:
    bodies = [b"%d" % number for number in range(3000)]
    publish(two.there, "q", *bodies)
    process = subprocess.Popen(two.argv("--rate", "1500"), stdout=subprocess.PIPE, text=True)
    wait_for(two, lambda told: told["moved"] >= 1000)
    argv = [str(BURROWCTL), "--data-dir", str(two.ours.data_dir), "import-from", "--stop"]
    stopped = subprocess.run(argv, capture_output=True, text=True, check=True)
    assert "The import has stopped" in stopped.stdout
    assert "twice" not in stopped.stdout, "none are alike"
    out, _ = process.communicate(timeout=30)
    assert process.returncode == 75, out
    assert 0 < asked(two)["moved"] < 3000
    assert two.rows()["q"]["moved"] == 3000
    assert [body for _, _, body in drained(two.ours, "q")] == bodies


def test_both_sides_are_killed(two: Two) -> None:
    bodies = [b"alike"] * 4000 + [b"%d" % number for number in range(4000)]
    publish(two.there, "q", *bodies)
    process = subprocess.Popen(
        two.argv("--rate", "4000", "--no-publishers"), stdout=subprocess.PIPE, text=True
    )
    wait_for(two, lambda told: told["moved"] >= 2000)
    two.ours.kill()
    process.communicate(timeout=30)
    assert process.returncode == 69
    two.ours.start()
    process = subprocess.Popen(
        two.argv("--rate", "4000", "--no-publishers"), stdout=subprocess.PIPE, text=True
    )
    wait_for(two, lambda told: told["moved"] >= 4000)
    two.there.kill()
    two.there.start()
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 0, out
    assert [body for _, _, body in drained(two.ours, "q")] == bodies
    assert drained(two.there, "q") == []


@pytest.mark.parametrize("is_copied", [False, True])
def test_a_batch_that_was_written_down_and_not_stored_is_not_taken_for_stored(
    two: Two, is_copied: bool
) -> None:
    """Killed between the two; a killed node passes over some of a queue's numbers, so that those say nothing."""
    publish(two.ours, "q", b"mine")
    two.ours.kill()
    two.ours.start()
    bodies = [b"%d" % number for number in range(50)]
    publish(two.there, "q", *bodies)
    directory = two.ours.data_dir / "import" / f"127.0.0.1_{two.there.amqp_port}"
    directory.mkdir(parents=True)
    name = b"/\0q"
    (made_ms,) = [each["made_ms"] for each in rows_of(two.ours, "queue")]
    path = directory / f"{crc32(name):08x}{crc32(name[::-1]):08x}.journal"
    journal = Journal(path, "/", "q", made_ms)
    journal.open()
    journal.begin(50)
    if not is_copied:
        journal.move()
    journal.intend(bytes(20 * SIZE), [1])
    journal.close()
    row = two.rows()["q"]
    assert row["reason"] == ""
    assert (row["there"], row["moved"], row["here"], row["again"]) == (50, 50, 51, 0)
    assert [body for _, _, body in drained(two.ours, "q")] == [b"mine", *bodies]


def test_who_consumes_there_is_waited_for(two: Two) -> None:
    publish(two.there, "q", b"1", b"2")
    consumer = channel(two.there)
    tag = consumer.basic_consume("q", lambda *_: None)
    process = subprocess.Popen(two.argv(), stdout=subprocess.PIPE, text=True)
    wait_for(two, lambda told: "consumers" in told["queues"][0]["reason"])
    consumer.basic_cancel(tag)
    consumer.connection.close()
    out, _ = process.communicate(timeout=30)
    assert process.returncode == 0, out
    assert len(drained(two.ours, "q")) == 2


def test_who_was_never_reached_is_not_waited_for(two: Two) -> None:
    publish(two.there, "q", b"x")
    body = {
        "uri": f"amqp://guest:wrong@127.0.0.1:{two.there.amqp_port}",
        "queues": [{"vhost": "/", "name": "q"}],
    }
    publish(two.ours, "q")
    http(two.ours.management_port, "POST", "burrowmq/import", body)
    wait_for(two, lambda told: told["state"] == "failed")
    assert "ACCESS_REFUSED" in asked(two)["queues"][0]["reason"]
    assert two.rows()["q"]["moved"] == 1


def test_what_is_wrong_is_said_before_anything_is_changed(two: Two) -> None:
    publish(two.there, "q", b"1", b"2")
    consumer = channel(two.there)
    consumer.basic_consume("q", lambda *_: None)
    eventually(lambda: http(two.there.management_port, "GET", "queues")[0]["consumers"] == 1)
    assert "would be moved when its consumer has stopped" in two.ctl("--dry-run").stdout
    consumer.connection.close()
    management = f"http://guest:guest@127.0.0.1:{two.there.management_port}"
    for words, code, text in (
        (("--rate", "fast"), 64, "--rate : fast"),
        (("--vhost", "nosuch"), 65, "there is no virtual host 'nosuch' there"),
        (("--management", "http://127.0.0.1:1"), 69, "(http://127.0.0.1:1) is not reached: Connection refused"),
        (("--management", management.replace(":guest@", ":x@")), 69, "refuses: Login failed\n"),
        (("--queues", "^nothing$"), 65, "no queue there has a name with '^nothing$' in it"),
    ):  # fmt: skip
        done = two.ctl(*words)
        assert (done.returncode, text in done.stderr) == (code, True), done
        assert "Is the node running" not in done.stderr, "it is not ours that is away"
    assert http(two.ours.management_port, "GET", "queues") == []


def test_who_begins_another_is_told_what_is_under_way(two: Two) -> None:
    publish(two.there, "q", b"one")
    publish(two.there, "used", b"one")
    consumer = channel(two.there)
    consumer.basic_consume("used", lambda *_: None)
    copy = subprocess.Popen(two.argv("--keep"), stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    wait_for(two, lambda found: any(row["state"] == "waiting" and row["reason"] for row in found["queues"]))  # fmt: skip
    move = subprocess.Popen(two.argv(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert move.stdout is not None
    told = next(line for line in move.stdout if "under way" in line)
    assert told.startswith(f"A copy of 2 queues from amqp://127.0.0.1:{two.there.amqp_port}")
    assert "its options count" in told
    assert two.ctl("--stop").returncode == 0
    assert (copy.wait(60), move.wait(60)) == (75, 75)
    move.stdout.close()
    assert copy.stdout is not None
    copy.stdout.close()
    consumer.connection.close()
    rows = two.rows()
    assert {name: (row["here"], row["again"]) for name, row in rows.items()} == {
        "q": (1, 1), "used": (1, 0),
    }, "what a copy brought is here, too"  # fmt: skip


def test_what_was_not_reached_is_still_there(two: Two) -> None:
    publish(two.there, "q", b"1", b"2")
    publish(two.there, "short", b"3", **{"x-expires": 86_400_000})
    argv = [each.replace(f":{two.there.amqp_port}", ":1") for each in two.argv()]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 75
    assert "q\t2\t0\t0\t2\tfailed: amqp://127.0.0.1:1: Connection refused" in done.stdout
    assert "The import has failed: 0 messages are here, 3 are left there" in done.stdout


def test_what_the_queue_here_refuses_is_said(two: Two) -> None:
    publish(two.there, "q", *[b"x"] * 10)
    publish(two.ours, "q", **{"x-max-length": 3, "x-overflow": "reject-publish"})
    rows = two.rows()
    assert rows["q"]["state"] == "failed"
    assert "refuses 7 messages" in rows["q"]["reason"]


def test_a_file_is_checked_without_any_node(tmp_path: Path) -> None:
    path = tmp_path / "definitions.json"
    path.write_text(json.dumps({"queues": [{"vhost": "/", "name": "s", "type": "stream"}]}))
    done = subprocess.run(
        [str(BURROWCTL), "import-from", "--check", str(path)], capture_output=True, text=True, check=False
    )  # fmt: skip
    assert (done.returncode, "left out, with its messages" in done.stdout) == (0, True), done
    path.write_text("[]")
    argv = [str(BURROWCTL), "import-from", "--check", str(path)]
    assert subprocess.run(argv, capture_output=True, check=False).returncode == 65


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["import-from"], "needs an AMQP URI"),
        (["import-from", "amqp://h"], "--management is missing"),
        (["import-from", "http://h", "--management", "http://h"], "must be an amqp"),
        (["import-from", "amqp://h", "--management", "ftp://h"], "--management"),
    ],
)
def test_bad_usage(tmp_path: Path, words: list[str], text: str) -> None:
    argv = [str(BURROWCTL), "--data-dir", str(tmp_path), *words]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 64
    assert text in done.stderr
