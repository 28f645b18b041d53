"""The queues of mails, with pika: publishing with confirms, and a worker.

A mail that cannot be sent now waits for 15 minutes in `mails.waiting`, up to three times; then, or when its address is
no address, it goes to `mails.dead`.
"""

import json
from collections.abc import Callable

import pika
from django.conf import settings
from pika.exceptions import AMQPError, NackError, UnroutableError

WAIT_S = 900
ROUNDS = 3
BLOCKED_S = 0.3
PERSISTENT = pika.BasicProperties(
    delivery_mode=pika.DeliveryMode.Persistent, content_type="application/json"
)


class NotTaken(Exception):
    """The broker did not confirm."""


class Unreachable(Exception):
    """The mail server does not answer now."""


def send_mail(mail: dict) -> None:
    """Send one. Tests put something else here."""


def connect() -> pika.BlockingConnection:
    """A connection, which gives up when the broker blocks it for long."""
    parameters = pika.URLParameters(settings.AMQP_URL)
    parameters.blocked_connection_timeout = BLOCKED_S
    return pika.BlockingConnection(parameters)


def declare(channel) -> None:
    """Make the queues."""
    channel.queue_declare("mails.dead", durable=True)
    to_waiting = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "mails.waiting"}
    channel.queue_declare("mails", durable=True, arguments=to_waiting)
    back = {
        "x-message-ttl": WAIT_S * 1000,
        "x-dead-letter-exchange": "",
        "x-dead-letter-routing-key": "mails",
    }
    channel.queue_declare("mails.waiting", durable=True, arguments=back)


def publish(mail: dict) -> None:
    """Put a mail into the queue. Raises NotTaken."""
    try:
        with connect() as connection:
            channel = connection.channel()
            channel.confirm_delivery()
            body = json.dumps(mail).encode()
            channel.basic_publish("", "mails", body, PERSISTENT, mandatory=True)
    except (AMQPError, NackError, UnroutableError) as error:
        raise NotTaken from error


def work(is_done: Callable[[], bool]) -> None:
    """Send mails until `is_done`."""
    with connect() as connection:
        channel = connection.channel()
        channel.basic_qos(prefetch_count=1)
        declare(channel)
        for method, properties, body in channel.consume("mails", inactivity_timeout=0.02):
            if method is not None:
                handle(channel, method, properties, body)
            if is_done():
                break
        channel.cancel()


def handle(channel, method, properties, body: bytes) -> None:
    """Send one mail, or say what becomes of it."""
    try:
        send_mail(json.loads(body))
    except Unreachable:
        if not method.redelivered:
            channel.basic_nack(method.delivery_tag, requeue=True)
            return
        if rounds(properties) < ROUNDS:
            channel.basic_reject(method.delivery_tag, requeue=False)
            return
        channel.basic_publish("", "mails.dead", body, PERSISTENT)
    except ValueError:
        channel.basic_publish("", "mails.dead", body, PERSISTENT)
    channel.basic_ack(method.delivery_tag)


def rounds(properties: pika.BasicProperties) -> int:
    """How often it has waited already."""
    deaths = (properties.headers or {}).get("x-death", [])
    return sum(death["count"] for death in deaths if death["queue"] == "mails.waiting")
