"""What pika leaves open is no later test's failure."""

from __future__ import annotations

import gc

import pika

from burrowmq.embedded import Broker
from tests.support.pika_sockets import socket_of


def test_a_connection_whose_loop_never_runs_again_closes_its_socket() -> None:
    with Broker() as broker:
        connection = pika.BlockingConnection(pika.URLParameters(broker.url))
        to_broker = socket_of(connection)
        connection._impl._transport._deactivate()
        connection._impl.ioloop.close()
        del connection
        gc.collect()
        assert to_broker.fileno() == -1
