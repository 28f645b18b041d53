"""What becomes of orders, with a broker that does what RabbitMQ does."""

import time
import errno

from orders import ROUNDS, WAIT_S, Busy


def test_an_order_is_cooked(client, burrowmq, kitchen):
    assert client.post("/orders", json={"dish": "soup"}).status_code == 202
    burrowmq.wait_for("orders", 0)
    assert kitchen.asked == ["soup"]
    assert [each.json() for each in burrowmq.published("")] == [{"dish": "soup"}]


def test_a_busy_kitchen_is_asked_again(client, burrowmq, kitchen):
    kitchen.answers = [Busy()]
    client.post("/orders", json={"dish": "soup"})
    burrowmq.wait_for("orders", 0)
    assert kitchen.asked == ["soup", "soup"]


def test_an_order_that_makes_no_sense_is_a_dead_letter(client, burrowmq, kitchen):
    kitchen.answers = [ValueError("no such dish")]
    client.post("/orders", json={"dish": "stone"})
    (dead,) = burrowmq.wait_for("orders.dead", 1)
    assert dead.json() == {"dish": "stone"}
    burrowmq.wait_for("orders", 0)


def test_a_kitchen_that_stays_busy_is_asked_again_every_quarter_of_an_hour(
    client, burrowmq, kitchen
):
    tries = 2 + 2 * ROUNDS  # each round twice: at once, and as a redelivery
    kitchen.answers = [Busy()] * tries
    client.post("/orders", json={"dish": "soup"})
    for _ in range(ROUNDS):
        burrowmq.wait_for("orders.waiting", 1)
        burrowmq.clock.advance(WAIT_S - 1)
        assert len(burrowmq.messages("orders.waiting")) == 1
        burrowmq.clock.advance(1)
    (dead,) = burrowmq.wait_for("orders.dead", 1)
    assert dead.json() == {"dish": "soup"}
    assert len(kitchen.asked) == tries


def test_the_application_comes_back_when_the_broker_does(client, burrowmq, kitchen):
    client.post("/orders", json={"dish": "soup"})
    burrowmq.wait_for("orders", 0)
    burrowmq.restart()
    answers = [client.post("/orders", json={"dish": "pie"}).status_code]
    until = time.monotonic() + 10
    while answers[-1] == 503 and time.monotonic() < until:  # until it has connected again
        answers.append(client.post("/orders", json={"dish": "pie"}).status_code)
    assert answers[-1] == 202
    burrowmq.wait_for("orders", 0)
    assert kitchen.asked[0] == "soup"
    assert "pie" in kitchen.asked


def test_a_full_disk_is_told_to_who_orders(client, burrowmq, kitchen):
    burrowmq.fail_disk(errno.ENOSPC)
    assert client.post("/orders", json={"dish": "soup"}).status_code == 503
    burrowmq.heal()
    answers = [client.post("/orders", json={"dish": "pie"}).status_code]
    while answers[-1] == 503 and len(answers) < 20:
        answers.append(client.post("/orders", json={"dish": "pie"}).status_code)
    assert answers[-1] == 202
    burrowmq.wait_for("orders", 0)
    assert "pie" in kitchen.asked
