"""What becomes of orders, with a broker that does what RabbitMQ does."""

import errno
import threading

from shop import WAIT_S, Busy, charge


def test_an_order_is_charged(burrowmq, worker, bank):
    charge.delay("tea")
    (message,) = burrowmq.wait_for("orders", 1)
    assert message.json()[0] == ["tea"]
    with worker():
        burrowmq.wait_for("orders", 0)
    assert bank.asked == ["tea"]


def test_a_busy_bank_is_asked_again(burrowmq, worker, bank):
    bank.answers = [Busy()]
    charge.delay("tea")
    with worker():
        burrowmq.wait_for("orders", 0)
    assert bank.asked == ["tea", "tea"]
    assert [each.headers["retries"] for each in burrowmq.published("")] == [0, 1]


def test_an_order_that_makes_no_sense_is_a_dead_letter(burrowmq, worker, bank):
    bank.answers = [ValueError("minus one tea")]
    charge.delay("-1 tea")
    with worker():
        (dead,) = burrowmq.wait_for("orders.dead", 1)
    assert dead.headers["x-death"][0]["reason"] == "rejected"
    assert dead.headers["x-death"][0]["queue"] == "orders"
    assert burrowmq.messages("orders") == []


def test_a_bank_that_stays_busy_is_asked_again_in_a_quarter_of_an_hour(burrowmq, worker, bank):
    bank.answers = [Busy(), Busy()]
    charge.delay("tea")
    with worker():
        burrowmq.wait_for("orders.waiting", 1)
        burrowmq.clock.advance(WAIT_S - 1)
        assert len(burrowmq.messages("orders.waiting")) == 1
        burrowmq.clock.advance(1)
        burrowmq.wait_for("orders", 0)
    assert burrowmq.messages("orders.waiting") == []
    assert bank.asked == ["tea", "tea", "tea"]


def test_orders_outlive_a_broker_that_restarts(burrowmq, worker, bank):
    charge.delay("tea")
    burrowmq.restart()
    charge.delay("milk")  # Celery connects again
    with worker():
        burrowmq.wait_for("orders", 0)
    assert sorted(bank.asked) == ["milk", "tea"]


def test_an_order_waits_for_a_full_disk_and_is_not_lost(burrowmq, celery_shop):
    burrowmq.fail_disk(errno.ENOSPC)
    sending = threading.Thread(target=charge.delay, args=("tea",))
    sending.start()
    sending.join(0.3)
    assert sending.is_alive()  # nothing is confirmed while nothing can be written
    burrowmq.heal()
    sending.join(5)
    assert not sending.is_alive()
    (message,) = burrowmq.wait_for("orders", 1)
    assert message.json()[0] == ["tea"]
