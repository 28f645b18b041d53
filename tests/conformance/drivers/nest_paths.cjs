// NestJS' microservices over RabbitMQ, and @golevelup/nestjs-rabbitmq, against BROKER_URL. Decorators are called by hand: no compiler.
require('reflect-metadata');
const assert = require('node:assert');
const { Module } = require('@nestjs/common');
const { NestFactory } = require('@nestjs/core');
const nest = require('@nestjs/microservices');
const golevelup = require('@golevelup/nestjs-rabbitmq');
const { firstValueFrom, lastValueFrom, of, timeout, toArray } = require('rxjs');
const { api, cut, prefix, run, sleep, until } = require('./node_checks.cjs');

const url = process.env.BROKER_URL;
const decorate = (kind, method, ...decorators) => decorators.forEach((one) =>
  one(kind.prototype, method, Object.getOwnPropertyDescriptor(kind.prototype, method)));
const argument = (kind, method, ...decorators) => decorators.forEach((one, at) => one(kind.prototype, method, at));
const moduleOf = (parts) => { const One = class {}; Module(parts)(One); return One; };
const ask = (client, pattern, data) => firstValueFrom(client.send(pattern, data).pipe(timeout(60000)));
const queueOf = (name) => api('GET', `queues/%2F/${encodeURIComponent(name)}`);

/** Start a service whose handlers are `handlers`, with a client; stop both after `work`. */
async function served(handlers, options, work) {
  const Controller = class {};
  for (const [method, { pattern, event, does }] of Object.entries(handlers)) {
    Controller.prototype[method] = does;
    decorate(Controller, method, event ? nest.EventPattern(pattern) : nest.MessagePattern(pattern));
    argument(Controller, method, nest.Payload(), nest.Ctx());
  }
  require('@nestjs/common').Controller()(Controller);
  const full = { urls: [url], queueOptions: { durable: false, autoDelete: true }, ...options };
  const app = await NestFactory.createMicroservice(moduleOf({ controllers: [Controller] }),
    { transport: nest.Transport.RMQ, options: full, logger: false });
  const { prefetchCount, isGlobalPrefetchCount, noAck, ...toClient } = full;
  const client = nest.ClientProxyFactory.create({ transport: nest.Transport.RMQ, options: toClient });
  try {
    await app.listen();
    await client.connect();
    await work(client, app);
  } finally {
    await client.close();
    await app.close();
  }
}

const checks = {};

checks['request-and-response'] = () => served(
  { sum: { pattern: 'sum', does: (numbers) => numbers.reduce((a, b) => a + b, 0) } }, { queue: `${prefix}.sum` },
  async (client) => {
    assert.equal(await ask(client, 'sum', [1, 2, 3]), 6);
    const many = await Promise.all([...Array(100).keys()].map((n) => ask(client, 'sum', [n, 1])));
    assert.deepEqual(many, [...Array(100).keys()].map((n) => n + 1));
  });
checks['stream-of-responses'] = () => served(
  { count: { pattern: { cmd: 'count' }, does: () => of(1, 2, 3) } }, { queue: `${prefix}.count` },
  async (client) => assert.deepEqual(await lastValueFrom(client.send({ cmd: 'count' }, '').pipe(toArray())), [1, 2, 3]));
checks['error-of-a-handler'] = () => served(
  { fail: { pattern: 'fail', does: () => { throw new nest.RpcException('refused by the handler'); } } }, { queue: `${prefix}.fail` },
  async (client) => assert.match(JSON.stringify(await ask(client, 'fail', {}).catch((error) => error.message ?? error)), /refused by the handler/));
checks['no-handler'] = () => served(
  { other: { pattern: 'other', does: () => 1 } }, { queue: `${prefix}.none` },
  async (client) => assert.match(JSON.stringify(await ask(client, 'none', {}).catch((error) => error.message ?? error)), /no matching message handler/));
checks['events'] = async () => {
  const seen = [];
  await served({ on: { pattern: 'created', event: true, does: (data) => { seen.push(data.id); } } }, { queue: `${prefix}.events` },
    async (client) => {
      for (let id = 0; id < 50; id++) await firstValueFrom(client.emit('created', { id }), { defaultValue: null });
      await until(() => seen.length === 50, 'the last event');
      assert.deepEqual(seen, [...Array(50).keys()]);
    });
};
checks['acknowledged-by-hand'] = () => served(
  { work: { pattern: 'work', does: (data, context) => {
    const message = context.getMessage();
    if (!message.fields.redelivered) { context.getChannelRef().nack(message, false, true); return; }
    context.getChannelRef().ack(message);
    return `again ${data}`;
  } } }, { queue: `${prefix}.manual`, noAck: false },
  async (client) => {
    const answers = await lastValueFrom(client.send('work', 'x').pipe(toArray(), timeout(60000)));
    assert.ok(answers.length <= 1);
    await until(async () => (await queueOf(`${prefix}.manual`)).messages_unacknowledged === 0, 'the acknowledgement');
  });
for (const isGlobal of [false, true]) checks[isGlobal ? 'prefetch-of-the-channel' : 'prefetch'] = async () => {
  const held = [];
  const queue = `${prefix}.prefetch.${isGlobal}`;
  await served({ hold: { pattern: 'hold', event: true, does: (_, context) => { held.push(context); } } },
    { queue, noAck: false, prefetchCount: 3, isGlobalPrefetchCount: isGlobal },
    async (client) => {
      for (let n = 0; n < 10; n++) await firstValueFrom(client.emit('hold', n), { defaultValue: null });
      await until(() => held.length === 3, 'three messages');
      await sleep(500);
      assert.equal(held.length, 3);
      for (let n = 0; n < 10; n++) {
        await until(() => held.length > n, `message ${n}`);
        held[n].getChannelRef().ack(held[n].getMessage());
      }
      assert.equal(held.length, 10);
    });
};
checks['wildcards'] = async () => {
  const seen = [];
  const handlers = {
    one: { pattern: 'order.*', event: true, does: (data) => { seen.push(`* ${data}`); } },
    all: { pattern: 'stock.#', event: true, does: (data) => { seen.push(`# ${data}`); } },
    ask: { pattern: 'price.*.now', does: (data) => data * 2 },
  };
  await served(handlers, { queue: `${prefix}.wild`, exchange: `${prefix}.wild`, exchangeType: 'topic', wildcards: true, exchangeArguments: {} },
    async (client) => {
      for (const [key, data] of [['order.new', 'a'], ['order.new.big', 'lost'], ['stock', 'b'], ['stock.x.y', 'c']])
        await firstValueFrom(client.emit(key, data), { defaultValue: null });
      assert.equal(await ask(client, 'price.tea.now', 21), 42);
      await until(() => seen.length === 3, 'three events');
      assert.deepEqual(seen, ['* a', '# b', '# c']);
    });
};
checks['fanout-exchange'] = async () => {
  const seen = [];
  const on = { on: { pattern: 'told', event: true, does: (data) => { seen.push(data); } } };
  const options = { exchange: `${prefix}.fanout`, exchangeType: 'fanout' };
  await served(on, { ...options, queue: `${prefix}.fan.a` }, () =>
    served(on, { ...options, queue: `${prefix}.fan.b` }, async (client) => {
      await firstValueFrom(client.emit('told', 'x'), { defaultValue: null });
      await until(() => seen.length === 2, 'both');
    }));
};
checks['headers-of-a-record'] = () => served(
  { look: { pattern: 'look', does: (_, context) => { const { headers, priority } = context.getMessage().properties; return { headers, priority }; } } },
  { queue: `${prefix}.record` },
  async (client) => {
    const record = new nest.RmqRecordBuilder('x').setOptions({ headers: { 'x-version': '1.0', n: 7 }, priority: 3 }).build();
    assert.deepEqual(await ask(client, 'look', record), { headers: { 'x-version': '1.0', n: 7 }, priority: 3 });
  });
checks['durable-lazy-queue-with-dead-letters'] = async () => {
  const grave = `${prefix}.grave`;
  await api('PUT', `queues/%2F/${grave}`, { durable: true, auto_delete: false, arguments: {} });
  const queueOptions = { durable: true, arguments: { 'x-queue-mode': 'lazy', 'x-dead-letter-exchange': '', 'x-dead-letter-routing-key': grave } };
  await served({ drop: { pattern: 'drop', event: true, does: (_, context) => context.getChannelRef().nack(context.getMessage(), false, false) } },
    { queue: `${prefix}.lazy`, noAck: false, persistent: true, queueOptions }, async (client) => {
      await firstValueFrom(client.emit('drop', 1), { defaultValue: null });
      const got = await until(async () => {
        const found = await api('POST', `queues/%2F/${grave}/get`, { count: 1, ackmode: 'ack_requeue_false', encoding: 'auto' });
        return found.length > 0 && found[0];
      }, 'the dead letter');
      assert.equal(got.properties.headers['x-death'][0].reason, 'rejected');
    });
  for (const name of [grave, `${prefix}.lazy`]) await api('DELETE', `queues/%2F/${name}`);
};
checks['reconnects-after-a-cut'] = () => served(
  { sum: { pattern: 'sum', does: (numbers) => numbers.length } },
  { queue: `${prefix}.cut`, socketOptions: { reconnectTimeInSeconds: 1, connectionOptions: { clientProperties: { connection_name: `${prefix}.cut` } } } },
  async (client) => {
    assert.equal(await ask(client, 'sum', [1]), 1);
    await cut(`${prefix}.cut`);
    await until(async () => (await ask(client, 'sum', [1, 2]).catch(() => 0)) === 2, 'an answer after the cut');
  });

/** Start a module of @golevelup/nestjs-rabbitmq whose service is `kind`. */
async function golevelled(kind, config, work) {
  require('@nestjs/common').Injectable()(kind);
  const rabbit = golevelup.RabbitMQModule.forRoot({
    uri: url, connectionInitOptions: { wait: true, timeout: 60000 },
    exchanges: [{ name: `${prefix}.x`, type: 'topic', options: { durable: false, autoDelete: false } }], ...config });
  const app = await NestFactory.createApplicationContext(moduleOf({ imports: [rabbit], providers: [kind] }), { logger: false });
  try {
    await app.init();
    await work(app.get(golevelup.AmqpConnection), app);
  } finally {
    await app.close();
  }
}

const exclusive = { durable: false, autoDelete: true };
checks['golevelup: rpc over direct reply-to'] = async () => {
  class Service { add({ a, b }) { return a + b; } }
  decorate(Service, 'add', golevelup.RabbitRPC({ exchange: `${prefix}.x`, routingKey: 'add', queue: `${prefix}.add`, queueOptions: exclusive }));
  await golevelled(Service, {}, async (amqp) => {
    const ask = (a, b) => amqp.request({ exchange: `${prefix}.x`, routingKey: 'add', payload: { a, b }, timeout: 60000 });
    assert.equal(await ask(20, 22), 42);
    assert.deepEqual(await Promise.all([...Array(50).keys()].map((n) => ask(n, n))), [...Array(50).keys()].map((n) => 2 * n));
  });
};
checks['golevelup: subscribe, wildcards, several bindings'] = async () => {
  const seen = [];
  class Service { on(message, raw) { seen.push([raw.fields.routingKey, message]); } }
  decorate(Service, 'on', golevelup.RabbitSubscribe({ exchange: `${prefix}.x`, routingKey: ['a.*', 'b.#'], queue: `${prefix}.sub`, queueOptions: exclusive }));
  await golevelled(Service, {}, async (amqp) => {
    for (const key of ['a.1', 'a.1.2', 'b', 'b.1.2']) await amqp.publish(`${prefix}.x`, key, { key });
    await until(() => seen.length === 3, 'three messages');
    assert.deepEqual(seen.map(([key]) => key), ['a.1', 'b', 'b.1.2']);
  });
};
checks['golevelup: nack, requeue, dead letter'] = async () => {
  const seen = [];
  const dead = [];
  class Service {
    on(message, raw) {
      seen.push(raw.fields.redelivered);
      return new golevelup.Nack(seen.length === 1);
    }
    buried(message, raw) { dead.push(raw.properties.headers['x-death'][0].reason); }
  }
  decorate(Service, 'on', golevelup.RabbitSubscribe({ exchange: `${prefix}.x`, routingKey: 'nack', queue: `${prefix}.nack`,
    queueOptions: { ...exclusive, deadLetterExchange: `${prefix}.x`, deadLetterRoutingKey: 'buried' } }));
  decorate(Service, 'buried', golevelup.RabbitSubscribe({ exchange: `${prefix}.x`, routingKey: 'buried', queue: `${prefix}.buried`, queueOptions: exclusive }));
  await golevelled(Service, {}, async (amqp) => {
    await amqp.publish(`${prefix}.x`, 'nack', {});
    await until(() => dead.length === 1, 'the dead letter');
    assert.deepEqual([seen, dead], [[false, true], ['rejected']]);
  });
};
checks['golevelup: channels with their prefetch'] = async () => {
  class Service { on() { return sleep(1); } other() { return sleep(1); } }
  const on = (routingKey, queueOptions) => golevelup.RabbitSubscribe({ exchange: `${prefix}.x`, routingKey, queue: `${prefix}.${routingKey}`, queueOptions });
  decorate(Service, 'on', on('first', { ...exclusive, channel: 'first' }));
  decorate(Service, 'other', on('second', { ...exclusive, channel: 'second' }));
  await golevelled(Service, { channels: { first: { prefetchCount: 15, default: true }, second: { prefetchCount: 2 } } }, async () => {
    for (const [name, wanted] of [['first', 15], ['second', 2]]) {
      const details = await until(async () => (await queueOf(`${prefix}.${name}`)).consumer_details?.[0], 'the consumer');
      assert.equal(details.prefetch_count, wanted);
    }
  });
};
checks['golevelup: cancel and resume'] = async () => {
  const seen = [];
  class Service { on(message) { seen.push(message); } }
  decorate(Service, 'on', golevelup.RabbitSubscribe({ exchange: `${prefix}.x`, routingKey: 'pause', queue: `${prefix}.pause`, queueOptions: { durable: false, expires: 60000 } }));
  await golevelled(Service, {}, async (amqp) => {
    const [tag] = amqp.consumerTags;
    await amqp.cancelConsumer(tag);
    await amqp.publish(`${prefix}.x`, 'pause', 1);
    await sleep(500);
    assert.deepEqual(seen, []);
    await amqp.resumeConsumer(tag);
    await until(() => seen.length === 1, 'the message');
  });
};
checks['golevelup: reconnects after a cut'] = async () => {
  const seen = [];
  class Service { on(message) { seen.push(message); } }
  decorate(Service, 'on', golevelup.RabbitSubscribe({ exchange: `${prefix}.x`, routingKey: 'cut', queue: `${prefix}.gcut`, queueOptions: { durable: false, expires: 60000 } }));
  const connectionManagerOptions = { reconnectTimeInSeconds: 1, connectionOptions: { clientProperties: { connection_name: `${prefix}.gcut` } } };
  await golevelled(Service, { connectionManagerOptions }, async (amqp) => {
    await cut(`${prefix}.gcut`);
    await until(async () => {
      await amqp.publish(`${prefix}.x`, 'cut', 1).catch(() => {});
      return seen.length > 0;
    }, 'a message after the cut');
  });
  await api('DELETE', `exchanges/%2F/${prefix}.x`);
};

run(checks);
