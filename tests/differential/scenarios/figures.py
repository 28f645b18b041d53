"""What is counted, and who is shown what of it: messages over HTTP, the overview of users who may not monitor."""

from __future__ import annotations

from typing import Any

from tests.differential.broker import Broker
from tests.differential.peer import wait_for

Record = Any
# Everything here is in virtual hosts of its own, and mostly waits for statistics.
BESIDE_OTHERS = 2


def _nonzero(stats: Any) -> dict[str, int]:
    return {
        name: value
        for name, value in (stats or {}).items()
        if value and not name.endswith("_details")
    }


def messages_over_http_are_counted(broker: Broker) -> Record:
    name, peer = broker.inside("counted")
    peer.queue("q")
    peer.bind("q", "amq.topic", "k")
    body = {"properties": {}, "payload": "x", "payload_encoding": "string"}
    for key in ("k", "k", "k", "none"):
        broker.http("POST", f"exchanges/{name}/amq.topic/publish", {**body, "routing_key": key})
    broker.http("POST", f"exchanges/{name}/amq.default/publish", {**body, "routing_key": "q"})
    for mode in ("ack_requeue_true", "ack_requeue_false", "reject_requeue_false"):
        asked = {"count": 1, "ackmode": mode, "encoding": "auto"}
        broker.http("POST", f"queues/{name}/q/get", asked)
    broker.http(
        "POST",
        f"queues/{name}/q/get",
        {"count": 9, "ackmode": "ack_requeue_false", "encoding": "auto"},
    )
    found = {}
    for path, enough in (
        (f"queues/{name}/q", {"publish": 4, "get_no_ack": 3, "get": 2, "get_empty": 1}),
        (f"exchanges/{name}/amq.topic", {"publish_in": 4, "publish_out": 3}),
        (f"exchanges/{name}/amq.default", {"publish_in": 1, "publish_out": 1}),
        (f"vhosts/{name}", {"publish": 5, "confirm": 5, "get_no_ack": 3, "get": 2, "get_empty": 1}),
    ):
        row = broker.wait_http(
            path,
            lambda row, enough=enough: enough.items() <= _nonzero(row.get("message_stats")).items(),
            40,
        )
        found[path.removeprefix(f"vhosts/{name}") or "vhost"] = _nonzero(row.get("message_stats"))
    return found


def the_overview_of_who_may_not_monitor(broker: Broker) -> Record:
    name, peer = broker.inside("open")
    _, other = broker.inside("hidden")
    peer.queue("q")
    peer.fill("q", b"1", b"2")
    peer.exchange("x", "fanout")
    other.queue("r")
    other.fill("r", b"3")
    user = broker.user("watcher", "management")
    broker.permit(user, ".*", ".*", ".*", name)
    broker.peer(vhost=name, user=user, password=user)
    found = []
    for each in ("overview", "overview?disable_stats=true"):
        path = each

        def row(path: str = path) -> Any:
            return broker.http("GET", path, user=user, password=user)[1]

        answer = wait_for(
            row,
            lambda row: (
                row["object_totals"].get("connections", 1) == 1
                and row.get("queue_totals", {}).get("messages", 2) == 2
                and _nonzero(row.get("message_stats", {"publish": 2})).get("publish") == 2
            ),
            40,
        )
        found.append(
            {
                "objects": answer["object_totals"],
                "queues": _nonzero(answer.get("queue_totals")),
                "messages": _nonzero(answer.get("message_stats")),
                "where": sorted({"node", "listeners", "contexts"} & answer.keys()),
            }
        )
    return found
