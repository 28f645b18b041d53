"""A shop that charges for its orders with Celery.

An order that cannot be charged now (`Busy`) is tried again at once, then in 15 minutes; one that never can be goes to
the dead letters, where somebody looks at it.
"""

from celery import Celery
from celery.exceptions import Reject
from kombu import Exchange, Queue

WAIT_S = 900
DIRECT = Exchange("shop", type="direct", durable=True)

ORDERS = Queue(
    "orders",
    DIRECT,
    routing_key="orders",
    queue_arguments={
        "x-dead-letter-exchange": "shop",
        "x-dead-letter-routing-key": "orders.dead",
    },
)
WAITING = Queue(
    "orders.waiting",
    DIRECT,
    routing_key="orders.waiting",
    queue_arguments={
        "x-message-ttl": WAIT_S * 1000,
        "x-dead-letter-exchange": "shop",
        "x-dead-letter-routing-key": "orders",
    },
)
DEAD = Queue("orders.dead", DIRECT, routing_key="orders.dead")


class Busy(Exception):
    """The bank does not answer now."""


def bank(order: str) -> None:
    """Charge for an order. Tests put something else here."""


app = Celery("shop")
app.conf.update(
    task_queues=[ORDERS, WAITING, DEAD],
    task_default_queue="orders",
    task_default_exchange="shop",
    task_default_routing_key="orders",
    task_acks_late=True,
    task_ignore_result=True,
    worker_prefetch_multiplier=1,
    broker_connection_retry_on_startup=True,
    broker_transport_options={"confirm_publish": True},
)


def declare() -> None:
    """Make the exchange and the queues."""
    with app.connection_for_write() as connection:
        for queue in (ORDERS, WAITING, DEAD):
            queue(connection.default_channel).declare()


@app.task(name="shop.charge", bind=True, max_retries=1)
def charge(self, order: str) -> None:
    """Charge for an order."""
    try:
        bank(order)
    except Busy as error:
        if self.request.retries < self.max_retries:
            raise self.retry(exc=error, countdown=0) from error
        charge.apply_async((order,), queue="orders.waiting", routing_key="orders.waiting")
    except ValueError as error:
        raise Reject(str(error), requeue=False) from error
