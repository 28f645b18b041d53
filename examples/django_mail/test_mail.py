"""What becomes of mails, with a broker that does what RabbitMQ does."""

import errno

from mail.queues import ROUNDS, WAIT_S, Unreachable


def sign_up(client, address="ann@example.org"):
    return client.post("/sign-up/", {"address": address}, "application/json").status_code


def test_a_mail_is_sent(client, burrowmq, worker, postman):
    assert sign_up(client) == 202
    (mail,) = burrowmq.messages("mails")
    assert mail.json() == {"to": "ann@example.org", "text": "Welcome!"}
    assert mail.properties["delivery_mode"] == 2
    with worker():
        burrowmq.wait_for("mails", 0)
    assert postman.sent == ["ann@example.org"]


def test_a_server_that_does_not_answer_is_asked_again(client, burrowmq, worker, postman):
    postman.answers = [Unreachable()]
    sign_up(client)
    with worker():
        burrowmq.wait_for("mails", 0)
    assert len(postman.sent) == 2


def test_what_is_no_address_is_a_dead_letter(client, burrowmq, worker, postman):
    postman.answers = [ValueError("no address")]
    sign_up(client, "ann")
    with worker():
        (dead,) = burrowmq.wait_for("mails.dead", 1)
    assert dead.json()["to"] == "ann"


def test_it_is_tried_again_every_quarter_of_an_hour_and_then_given_up(
    client, burrowmq, worker, postman
):
    postman.answers = [Unreachable()] * (2 + 2 * ROUNDS)
    sign_up(client)
    with worker():
        for _ in range(ROUNDS):
            burrowmq.wait_for("mails.waiting", 1)
            burrowmq.clock.advance(WAIT_S - 1)
            assert len(burrowmq.messages("mails.waiting")) == 1
            burrowmq.clock.advance(1)
        burrowmq.wait_for("mails.dead", 1)
    assert len(postman.sent) == 2 + 2 * ROUNDS


def test_mails_outlive_a_broker_that_restarts(client, burrowmq, worker, postman):
    sign_up(client)
    burrowmq.restart()
    sign_up(client, "bob@example.org")
    with worker():
        burrowmq.wait_for("mails", 0)
    assert postman.sent == ["ann@example.org", "bob@example.org"]


def test_a_full_disk_is_told_to_who_signs_up(client, burrowmq, worker, postman):
    burrowmq.fail_disk(errno.ENOSPC)
    assert sign_up(client) == 503
    burrowmq.heal()
    assert sign_up(client, "bob@example.org") == 202
    with worker():
        burrowmq.wait_for("mails", 0)
    assert "bob@example.org" in postman.sent


def test_a_mail_that_the_broker_refuses_is_told_too(client, burrowmq):
    burrowmq.nack_next()
    assert sign_up(client) == 503
    assert burrowmq.messages("mails") == []
