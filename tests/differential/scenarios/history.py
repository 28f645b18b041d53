"""What was: samples of figures over HTTP, their shapes, their arithmetic, and what is refused."""

from __future__ import annotations

from itertools import pairwise
from typing import Any
from urllib.parse import quote

from tests.differential.broker import Broker
from tests.differential.compare import ABSENT

Record = Any
# Nothing here is about the figures of others: scenarios run beside it.
BESIDE_OTHERS = 4

FAMILIES = ("lengths", "msg_rates", "data_rates", "node_stats")


def asked(age_s: int, step_s: int) -> str:
    """The same range for every family."""
    return "&".join(f"{name}_age={age_s}&{name}_incr={step_s}" for name in FAMILIES)


def shape(details: Any, age_s: int, step_s: int) -> Record:
    """What of details is the same on both: all but the figures, and the time."""
    if not isinstance(details, dict):
        return ABSENT
    samples = details.get("samples")
    if samples is None:
        return sorted(details)
    times = [each["timestamp"] for each in samples]
    figures = [each["sample"] for each in samples]
    # RabbitMQ now and then has not yet the newest one.
    whole = age_s // step_s + 1
    return {
        "keys": sorted(details),
        "of a sample": sorted(samples[0]),
        "is whole": whole - 1 <= len(samples) <= whole,
        "steps": {before - after for before, after in pairwise(times)},
        "on the grid": {time % (step_s * 1000) for time in times},
        "average": abs(details["avg"] - sum(figures) / len(figures)) < 0.001,
        "average rate": abs(details["avg_rate"] - (figures[0] - figures[-1]) * 1000 / (times[0] - times[-1]))
        < 0.001,
        "rate": abs(details["rate"] - (figures[0] - figures[1]) * 1000 / (times[0] - times[1])) < 0.001,
    }  # fmt: skip


def newest(details: Any) -> Any:
    """The newest sample, if there is one."""
    samples = (details or {}).get("samples")
    return samples[0]["sample"] if samples else None


def filled(broker: Broker, count: int = 5) -> tuple[str, str]:
    """A virtual host of the scenario's own with a queue of messages; both names, and the statistics have come."""
    name, peer = broker.inside("v")
    peer.queue("q")
    peer.fill("q", *[b"x"] * count)
    path = f"queues/{quote(name, safe='')}/q"
    broker.wait_http(
        f"{path}?{asked(10, 5)}",
        lambda row: newest(row.get("messages_details")) == count and "message_stats" in row,
        40,
    )
    return name, path


def samples_of_a_queue(broker: Broker) -> Record:
    _, path = filled(broker)
    row = broker.http("GET", f"{path}?{asked(20, 5)}")[1]
    names = ("messages", "messages_ready", "messages_unacknowledged")
    found = {name: shape(row.get(f"{name}_details"), 20, 5) for name in names}
    return found | {"publish": shape(row["message_stats"].get("publish_details"), 20, 5)}


def samples_begin_with_nothing(broker: Broker) -> Record:
    """Before the queue was declared there was nothing in it, as far back as anybody asks."""
    _, path = filled(broker)
    answers = [
        broker.http("GET", f"{path}?{asked(age, step)}")[1] for age, step in ((120, 5), (50, 2))
    ]
    return [
        {each["sample"] for each in row["messages_details"]["samples"]} for row in answers
    ]  # fmt: skip


def samples_of_one_family_only(broker: Broker) -> Record:
    _, path = filled(broker)
    found = []
    for family in FAMILIES:
        row = broker.http("GET", f"{path}?{family}_age=20&{family}_incr=5")[1]
        places = (row["messages_details"], row["message_stats"]["publish_details"])
        found.append([sorted(each) for each in places])
    return found


def samples_in_a_list_of_queues(broker: Broker) -> Record:
    name, _ = filled(broker)
    path = f"queues/{quote(name, safe='')}"
    rows = broker.http("GET", f"{path}?{asked(20, 5)}")[1]
    page = broker.http("GET", f"{path}?page=1&page_size=5&{asked(20, 5)}")[1]["items"]
    columns = broker.http("GET", f"{path}?columns=name,messages_details.rate&{asked(20, 5)}")[1]
    return [
        [shape(row.get("messages_details"), 20, 5) for row in rows],
        [shape(row.get("messages_details"), 20, 5) for row in page],
        [sorted(row["messages_details"]) for row in columns],
    ]


def samples_of_a_virtual_host(broker: Broker) -> Record:
    name, _ = filled(broker)
    path = f"vhosts/{quote(name, safe='')}?{asked(20, 5)}"
    row = broker.wait_http(
        path, lambda row: len(row.get("recv_oct_details", {})) > 1 and "message_stats" in row, 40
    )
    return {
        "messages": shape(row.get("messages_details"), 20, 5),
        "publish": shape(row["message_stats"].get("publish_details"), 20, 5),
        "recv_oct": shape(row.get("recv_oct_details"), 20, 5),
        "send_oct": shape(row.get("send_oct_details"), 20, 5),
    }


def samples_of_connections_and_channels(broker: Broker) -> Record:
    name, _ = filled(broker)
    place = f"vhosts/{quote(name, safe='')}"
    connection = broker.wait_http(
        f"{place}/connections?{asked(20, 5)}",
        lambda rows: rows and len(rows[0].get("recv_oct_details", {})) > 1,
        40,
    )[0]
    channel = broker.wait_http(
        f"{place}/channels?{asked(20, 5)}", lambda rows: rows and "message_stats" in rows[0], 40
    )[0]
    one = broker.http("GET", f"channels/{quote(channel['name'], safe='')}?{asked(20, 5)}")[1]
    return {
        "recv_oct": shape(connection.get("recv_oct_details"), 20, 5),
        "send_oct": shape(connection.get("send_oct_details"), 20, 5),
        "publish": shape(channel["message_stats"].get("publish_details"), 20, 5),
        "one": shape(one["message_stats"].get("publish_details"), 20, 5),
    }


def samples_of_an_exchange(broker: Broker) -> Record:
    name, peer = broker.inside("v")
    peer.exchange("e", "fanout")
    peer.queue("q")
    peer.bind("q", "e", "")
    peer.publish("e", "", b"x")
    path = f"exchanges/{quote(name, safe='')}/e?{asked(20, 5)}"
    row = broker.wait_http(path, lambda row: "publish_out" in row.get("message_stats", {}), 40)
    return {
        each: shape(row["message_stats"].get(f"{each}_details"), 20, 5)
        for each in ("publish_in", "publish_out")
    }


def samples_of_the_node(broker: Broker) -> Record:
    row = broker.wait_http(
        f"nodes?{asked(20, 5)}", lambda rows: len(rows[0].get("mem_used_details", {})) > 1, 40
    )[0]
    broker.peer().queue("samples-of-the-node")
    overview = broker.wait_http(
        f"overview?{asked(20, 5)}", lambda row: "messages_details" in row["queue_totals"], 40
    )
    names = (
        "mem_used",
        "disk_free",
        "fd_used",
        "sockets_used",
        "proc_used",
        "io_write_bytes",
        "connection_created",
    )
    return {
        **{name: shape(row.get(f"{name}_details"), 20, 5) for name in names},
        "totals": shape(overview["queue_totals"]["messages_details"], 20, 5),
        "churn": shape(overview["churn_rates"]["queue_declared_details"], 20, 5),
    }


def ranges_that_make_no_sense(broker: Broker) -> Record:
    _, path = filled(broker)
    found = {}
    for where in ("overview", path, "queues", "vhosts", "vhosts/%2F", "connections", "channels", "exchanges",
                  "exchanges/%2F/amq.fanout", "nodes"):  # fmt: skip
        for age, step in (("0", "5"), ("-5", "5"), ("5", "0"), ("5", "-5"), ("5010", "10")):
            answer = broker.http("GET", f"{where}?lengths_age={age}&lengths_incr={step}")
            found[f"{where.rpartition('/')[2]} {age} {step}"] = answer
    return found


def ranges_that_mean_nothing(broker: Broker) -> Record:
    _, path = filled(broker)
    queries = (
        "lengths_age=20", "lengths_incr=5", "lengths_age=&lengths_incr=", "lengths_age=x&lengths_incr=5",
        "lengths_age=20.5&lengths_incr=5", "lengths_age=20&lengths_incr=1e1", "lengths_age=0x20&lengths_incr=5",
        "lengths_age=%2020&lengths_incr=5", "other_age=20&other_incr=5",
    )  # fmt: skip
    rows = {query: broker.http("GET", f"{path}?{query}") for query in queries}
    return {
        query: (status, sorted(row["messages_details"])) for query, (status, row) in rows.items()
    }


def an_age_below_the_increment(broker: Broker) -> Record:
    _, path = filled(broker)
    row = broker.http("GET", f"{path}?lengths_age=5&lengths_incr=20")[1]
    return sorted(row["messages_details"]), len(row["messages_details"]["samples"])


def a_sign_before_the_age(broker: Broker) -> Record:
    _, path = filled(broker)
    row = broker.http("GET", f"{path}?lengths_age=%2B20&lengths_incr=5")[1]
    return shape(row["messages_details"], 20, 5)
