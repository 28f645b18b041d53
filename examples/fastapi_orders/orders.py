"""Orders over HTTP, handled from a queue: FastAPI with aio-pika.

`POST /orders` answers 202 when the broker has the order on disk, and 503 when it does not say so in time. A worker in
the same process handles orders. One that fails is given back once; the second time it waits for 15 minutes, and after
three such rounds, or when it makes no sense, it goes to the dead letters.
"""

import asyncio
import functools
import json
import os
from contextlib import asynccontextmanager

import aio_pika
from aio_pika import DeliveryMode, Message
from fastapi import FastAPI, HTTPException

WAIT_S = 900
ROUNDS = 3
CONFIRM_S = float(os.environ.get("ORDERS_CONFIRM_S", "5"))


class Busy(Exception):
    """The kitchen cannot take an order now."""


async def kitchen(order: dict) -> None:
    """Cook. Tests put something else here."""


async def declare(channel: aio_pika.abc.AbstractChannel) -> aio_pika.abc.AbstractQueue:
    """Make the queues; gives the one that is worked on."""
    await channel.declare_queue("orders.dead", durable=True)
    await channel.declare_queue(
        "orders.waiting",
        durable=True,
        arguments={
            "x-message-ttl": WAIT_S * 1000,
            "x-dead-letter-exchange": "",
            "x-dead-letter-routing-key": "orders",
        },
    )
    return await channel.declare_queue(
        "orders",
        durable=True,
        arguments={
            "x-dead-letter-exchange": "",
            "x-dead-letter-routing-key": "orders.waiting",
        },
    )


async def send(channel: aio_pika.abc.AbstractChannel, queue: str, body: bytes) -> None:
    """Publish, and wait until it is confirmed."""
    message = Message(body, delivery_mode=DeliveryMode.PERSISTENT)
    await asyncio.wait_for(channel.default_exchange.publish(message, queue), CONFIRM_S)


def rounds(message: aio_pika.abc.AbstractIncomingMessage) -> int:
    """How often it has waited already."""
    deaths = message.headers.get("x-death", [])
    return sum(death["count"] for death in deaths if death["queue"] == "orders.waiting")


async def handle(channel: aio_pika.abc.AbstractChannel, message) -> None:
    """Cook one order."""
    try:
        order = json.loads(message.body)
        await kitchen(order)
    except ValueError:
        await send(channel, "orders.dead", message.body)
    except Busy:
        if not message.redelivered:
            await message.nack(requeue=True)
            return
        if rounds(message) < ROUNDS:
            await message.reject(requeue=False)  # to orders.waiting
            return
        await send(channel, "orders.dead", message.body)
    await message.ack()


@asynccontextmanager
async def lifespan(app: FastAPI):
    """Connect, and work until the end."""
    connection = await aio_pika.connect_robust(os.environ["AMQP_URL"], reconnect_interval=0.1)
    async with connection:
        app.state.channel = await connection.channel()
        working = await connection.channel()
        await working.set_qos(1)
        queue = await declare(working)
        await queue.consume(functools.partial(handle, working))
        yield


app = FastAPI(lifespan=lifespan)


@app.post("/orders", status_code=202)
async def order(order: dict) -> dict:
    """Take an order."""
    try:
        await send(app.state.channel, "orders", json.dumps(order).encode())
    except (TimeoutError, ConnectionError, RuntimeError, aio_pika.exceptions.AMQPError) as error:
        raise HTTPException(503, "nobody takes orders now") from error
    return {"taken": True}
