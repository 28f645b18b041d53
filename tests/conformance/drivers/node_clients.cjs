// Node's other clients against BROKER_URL: amqp-connection-manager, rabbitmq-client, rascal, @cloudamqp/amqp-client, foo-foo-mq, moleculer.
const assert = require('node:assert');
const { api, cut, prefix, run, sleep, until } = require('./node_checks.cjs');

const url = process.env.BROKER_URL;
const place = new URL(url);
const checks = {};
const named = (work, ...names) => { for (const name of names) checks[name] = () => work(name); };
const queueOf = (name) => api('GET', `queues/%2F/${encodeURIComponent(name)}`);

// amqp-connection-manager
const manager = require('amqp-connection-manager');
async function managed(work, name = `${prefix}.acm`) {
  const options = { reconnectTimeInSeconds: 1, connectionOptions: { clientProperties: { connection_name: name } } };
  const connection = manager.connect([url], options);
  try {
    await connection.connect({ timeout: 60000 });
    await work(connection);
  } finally {
    await connection.close();
  }
}
checks['amqp-connection-manager: what is published before the connection arrives'] = async () => {
  const connection = manager.connect([url]);
  const queue = `${prefix}.acm.early`;
  const channel = connection.createChannel({ json: true, setup: (one) => one.assertQueue(queue, { durable: false, autoDelete: true }) });
  await Promise.all([...Array(20).keys()].map((n) => channel.sendToQueue(queue, { n })));
  const seen = [];
  await channel.consume(queue, (message) => { seen.push(JSON.parse(message.content).n); channel.ack(message); });
  await until(() => seen.length === 20, 'the last');
  assert.deepEqual(seen, [...Array(20).keys()]);
  await connection.close();
};
checks['amqp-connection-manager: consumers and setup are there again after a cut'] = () => managed(async (connection) => {
  const queue = `${prefix}.acm.cut`;
  const seen = [];
  const channel = connection.createChannel({ setup: async (one) => { await one.assertQueue(queue, { durable: false, exclusive: true }); } });
  await channel.consume(queue, (message) => seen.push(message.content.toString()), { noAck: true, prefetch: 5 });
  await channel.sendToQueue(queue, 'before');
  await until(() => seen.length === 1, 'the first');
  const again = new Promise((done) => connection.once('connect', done));
  const gone = new Promise((done) => connection.once('disconnect', done));
  await cut(`${prefix}.acm`);
  await gone;
  await channel.sendToQueue(queue, 'after');
  await again;
  await until(() => seen.includes('after'), 'what was published meanwhile');
});
checks['amqp-connection-manager: the second address is tried'] = async () => {
  const connection = manager.connect(['amqp://guest:guest@127.0.0.1:1', url], { reconnectTimeInSeconds: 1 });
  await connection.connect({ timeout: 60000 });
  assert.ok(connection.isConnected());
  await connection.close();
};
checks['amqp-connection-manager: a missing queue is 404, and all is there again'] = () => managed(async (connection) => {
  const channel = connection.createChannel({});
  channel.on('error', () => {});
  await channel.waitForConnect();
  await assert.rejects(channel.checkQueue(`${prefix}.acm.none`), /404/);
  await until(() => connection.isConnected(), 'the connection');
  await channel.waitForConnect();
});

// rabbitmq-client
const { Connection } = require('rabbitmq-client');
async function rabbited(work, name = `${prefix}.rc`) {
  const rabbit = new Connection({ url, retryLow: 100, connectionName: name });
  rabbit.on('error', () => {});
  try {
    await rabbit.onConnect(60000);
    await work(rabbit);
  } finally {
    await rabbit.close();
  }
}
checks['rabbitmq-client: publisher and consumer'] = () => rabbited(async (rabbit) => {
  const seen = [];
  const exchange = `${prefix}.rc.x`;
  const consumer = rabbit.createConsumer({ queue: `${prefix}.rc.q`, queueOptions: { exclusive: true }, qos: { prefetchCount: 2 },
    exchanges: [{ exchange, type: 'topic', autoDelete: true }], queueBindings: [{ exchange, routingKey: 'users.*' }] },
  async (message) => { seen.push(message.body.id); });
  await new Promise((done) => consumer.once('ready', done));
  const publisher = rabbit.createPublisher({ confirm: true, maxAttempts: 2, exchanges: [{ exchange, type: 'topic', autoDelete: true }] });
  for (let id = 0; id < 20; id++) await publisher.send({ exchange, routingKey: 'users.new' }, { id });
  await until(() => seen.length === 20, 'the last');
  await publisher.close();
  await consumer.close();
});
checks['rabbitmq-client: statuses of a handler: requeue, drop'] = () => rabbited(async (rabbit) => {
  const flags = [];
  const queue = `${prefix}.rc.status`;
  const grave = await rabbit.queueDeclare({ exclusive: true });
  const consumer = rabbit.createConsumer({ queue, queueOptions: { exclusive: true,
    arguments: { 'x-dead-letter-exchange': '', 'x-dead-letter-routing-key': grave.queue } } },
  (message) => { flags.push(message.redelivered); return flags.length === 1 ? 1 : 2; });
  await new Promise((done) => consumer.once('ready', done));
  const publisher = rabbit.createPublisher({ confirm: true });
  await publisher.send(queue, 'x');
  const dead = await until(() => rabbit.basicGet({ queue: grave.queue, noAck: true }), 'the dead letter');
  assert.deepEqual([flags, dead.headers['x-death'][0].reason], [[false, true], 'rejected']);
  await publisher.close();
  await consumer.close();
});
checks['rabbitmq-client: rpc'] = () => rabbited(async (rabbit) => {
  const queue = `${prefix}.rc.rpc`;
  const server = rabbit.createConsumer({ queue, queueOptions: { exclusive: true } }, async (request, reply) => { await reply(request.body * 2); });
  await new Promise((done) => server.once('ready', done));
  const client = rabbit.createRPCClient({ confirm: true, timeout: 60000 });
  const answers = await Promise.all([...Array(30).keys()].map((n) => client.send(queue, n)));
  assert.deepEqual(answers.map((one) => one.body), [...Array(30).keys()].map((n) => 2 * n));
  await client.close();
  await server.close();
});
checks['rabbitmq-client: mandatory, missing, unequal'] = () => rabbited(async (rabbit) => {
  const publisher = rabbit.createPublisher({ confirm: true });
  const returned = new Promise((done) => publisher.once('basic.return', done));
  await publisher.send({ routingKey: `${prefix}.rc.none`, mandatory: true }, 'x');
  assert.equal((await returned).replyText, 'NO_ROUTE');
  await publisher.close();
  await assert.rejects(rabbit.queueDeclare({ queue: `${prefix}.rc.none`, passive: true }), { code: 'NOT_FOUND' });
  const queue = await rabbit.queueDeclare({ queue: `${prefix}.rc.un`, exclusive: true });
  await assert.rejects(rabbit.queueDeclare({ queue: queue.queue, exclusive: true, arguments: { 'x-max-length': 1 } }), { code: 'PRECONDITION_FAILED' });
});
checks['rabbitmq-client: goes on after a cut'] = () => rabbited(async (rabbit) => {
  const seen = [];
  const queue = `${prefix}.rc.cut`;
  const consumer = rabbit.createConsumer({ queue, queueOptions: { durable: false, arguments: { 'x-expires': 60000 } } }, (message) => { seen.push(message.body); });
  consumer.on('error', () => {});
  await new Promise((done) => consumer.once('ready', done));
  const publisher = rabbit.createPublisher({ confirm: true, maxAttempts: 10 });
  await cut(`${prefix}.rc`);
  await publisher.send(queue, 'after');
  await until(() => seen.includes('after'), 'what was published after the cut');
  await publisher.close();
  await consumer.close();
});

// rascal
const rascal = require('rascal');
async function rascaled(config, work) {
  const vhost = `${prefix}.rascal`;
  const management = { hostname: place.hostname, port: +new URL(process.env.BROKER_API).port, user: place.username, password: place.password, options: { timeout: 60000 } };
  const connection = { hostname: place.hostname, port: +place.port, user: place.username, password: place.password, management, socketOptions: { timeout: 60000 } };
  const full = { vhosts: { [vhost]: { assert: true, connection, ...config.vhost } }, publications: config.publications, subscriptions: config.subscriptions };
  const broker = await rascal.BrokerAsPromised.create(rascal.withDefaultConfig(full));
  broker.on('error', () => {});
  try {
    await work(broker, vhost);
  } finally {
    await broker.nuke();
    await assert.rejects(api('GET', `vhosts/${encodeURIComponent(vhost)}`), /404/);
  }
}
const rascalPaths = (more = {}) => ({
  vhost: { exchanges: { x: { assert: true, type: 'topic' } }, queues: { q: { assert: true, ...more.queue }, dead: { assert: true } },
    bindings: { b: { source: 'x', destination: 'q', bindingKey: 'a.#' }, d: { source: 'x', destination: 'dead', bindingKey: 'dead.#' } } },
  publications: { p: { vhost: `${prefix}.rascal`, exchange: 'x', routingKey: 'a.b', ...more.publication } },
  subscriptions: { s: { vhost: `${prefix}.rascal`, queue: 'q', ...more.subscription }, d: { vhost: `${prefix}.rascal`, queue: 'dead' } },
});
async function published(broker, name, ...rest) {
  const publication = await broker.publish(name, ...rest);
  return new Promise((done, fail) => publication.on('success', done).on('paused', () => fail(new Error('paused'))).on('error', fail).on('return', () => fail(new Error('returned'))));
}
async function taken(broker, name, does) {
  const subscription = await broker.subscribe(name);
  return new Promise((done, fail) => subscription.on('message', (...all) => { const end = does(...all); if (end !== undefined) done(end); })
    .on('error', fail).on('invalid_content', fail));
}
checks['rascal: vhost, publication and subscription are made'] = () => rascaled(rascalPaths(), async (broker, vhost) => {
  assert.equal((await api('GET', `vhosts/${encodeURIComponent(vhost)}`)).name, vhost);
  await published(broker, 'p', { n: 1 });
  const body = await taken(broker, 's', (message, content, ackOrNack) => { ackOrNack(); return content; });
  assert.deepEqual(body, { n: 1 });
});
checks['rascal: recovery republishes, then gives up to a dead letter'] = () => rascaled(rascalPaths(
  { queue: { options: { arguments: { 'x-dead-letter-exchange': 'x', 'x-dead-letter-routing-key': 'dead.q' } } } }), async (broker) => {
  await published(broker, 'p', 'x');
  let tries = 0;
  const subscription = await broker.subscribe('s');
  subscription.on('error', () => {}).on('message', (message, content, ackOrNack) => {
    tries += 1;
    ackOrNack(new Error('no'), [{ strategy: 'republish', defer: 100, attempts: 3 }, { strategy: 'nack' }]);
  });
  const reason = await taken(broker, 'd', (message, content, ackOrNack) => { ackOrNack(); return message.properties.headers['x-death'][0].reason; });
  assert.deepEqual([tries, reason], [4, 'rejected']);
});
checks['rascal: republished through a delay queue'] = () => {
  const config = rascalPaths();
  config.vhost.queues.delay = { assert: true, options: { arguments: { 'x-message-ttl': 200, 'x-dead-letter-exchange': 'x', 'x-dead-letter-routing-key': 'a.again' } } };
  config.vhost.bindings.w = { source: 'x', destination: 'delay', bindingKey: 'wait' };
  config.publications.p.routingKey = 'wait';
  return rascaled(config, async (broker) => {
    await published(broker, 'p', 'x');
    const key = await taken(broker, 's', (message, content, ackOrNack) => { ackOrNack(); return message.fields.routingKey; });
    assert.equal(key, 'a.again');
  });
};
checks['rascal: a mandatory message that goes nowhere comes back'] = () => rascaled(
  rascalPaths({ publication: { routingKey: 'none', options: { mandatory: true } } }),
  (broker) => assert.rejects(published(broker, 'p', 'x'), /returned/));
checks['rascal: goes on after a cut'] = () => rascaled(rascalPaths(), async (broker, vhost) => {
  const seen = [];
  const subscription = await broker.subscribe('s');
  subscription.on('error', () => {}).on('message', (message, content, ackOrNack) => { seen.push(content); ackOrNack(); });
  await published(broker, 'p', 'before');
  await until(() => seen.length === 1, 'a message before the cut');
  const open = await until(async () => {
    const found = (await api('GET', 'connections')).filter((one) => one.vhost === vhost);
    return found.length > 0 && found;
  }, 'its connection');
  for (const one of open) await api('DELETE', `connections/${encodeURIComponent(one.name)}`);
  // A publication that was under way at the cut is told of neither success nor failure.
  await until(async () => {
    await Promise.race([published(broker, 'p', 'after').catch(() => {}), sleep(3000)]);
    return seen.includes('after');
  }, 'a message after the cut');
});

// @cloudamqp/amqp-client
const { AMQPClient, AMQPSession } = require('@cloudamqp/amqp-client');
checks['amqp-client: channels, confirms, consume, ack'] = async () => {
  const connection = await new AMQPClient(url).connect();
  const channel = await connection.channel();
  await channel.confirmSelect();
  const { name } = await channel.queueDeclare('', { exclusive: true });
  for (let n = 0; n < 50; n++) await channel.basicPublish('', name, '' + n, { deliveryMode: 2 });
  await channel.prefetch(10);
  const seen = [];
  const consumer = await channel.basicConsume(name, { noAck: false }, async (message) => { seen.push(message.bodyString()); await message.ack(); });
  await until(() => seen.length === 50, 'the last');
  await consumer.cancel();
  assert.deepEqual(seen, [...Array(50).keys()].map(String));
  await connection.close();
};
checks['amqp-client: transactions, get, return, refusals'] = async () => {
  const connection = await new AMQPClient(url).connect();
  const channel = await connection.channel();
  const { name } = await channel.queueDeclare('', { exclusive: true });
  await channel.txSelect();
  await channel.basicPublish('', name, 'kept');
  await channel.txCommit();
  await channel.basicPublish('', name, 'lost');
  await channel.txRollback();
  assert.equal((await channel.basicGet(name)).bodyString(), 'kept');
  assert.equal(await channel.basicGet(name), null);
  const returning = await connection.channel();
  const returned = new Promise((done) => { returning.onReturn = done; });
  await returning.basicPublish('amq.direct', `${prefix}.none`, 'x', {}, true);
  assert.equal((await returned).replyCode, 312);
  await assert.rejects(returning.queueDeclare(`${prefix}.none`, { passive: true }), /NOT_FOUND/);
  await assert.rejects((await connection.channel()).exchangeDeclare('amq.mine', 'direct'), /ACCESS_REFUSED/);
  await connection.close();
};
checks['amqp-client: session, rpc'] = async () => {
  const session = await AMQPSession.connect(url);
  const server = await session.rpcServer(`${prefix}.ac.rpc`, (message) => `got ${message.bodyString()}`);
  const client = await session.rpcClient();
  assert.equal((await client.call(`${prefix}.ac.rpc`, 'x', { timeout: 60000 })).bodyString(), 'got x');
  await client.close();
  await server.close();
  const exchange = await session.topicExchange(`${prefix}.ac.x`, { autoDelete: true });
  const queue = await session.queue(`${prefix}.ac.q`, { durable: false, autoDelete: true });
  await queue.bind(exchange, 'a.#');
  const seen = [];
  await queue.subscribe(async (message) => { seen.push(message.routingKey); });
  for (const key of ['a', 'b', 'a.b.c']) await exchange.publish(key, { routingKey: key });
  await until(() => seen.length === 2, 'both');
  assert.deepEqual(seen, ['a', 'a.b.c']);
  await session.stop();
  await api('DELETE', `queues/%2F/${prefix}.ac.rpc`).catch(() => {});
};

// foo-foo-mq
const foo = require('foo-foo-mq');
const fooConnection = (more = {}) => ({ name: 'default', user: place.username, pass: place.password, host: place.hostname, port: +place.port, vhost: '%2f', ...more });
async function fooed(topology, work) {
  await foo.configure({ connection: fooConnection(topology.connection), exchanges: topology.exchanges, queues: topology.queues, bindings: topology.bindings });
  try {
    await work();
  } finally {
    await foo.close('default', true);
    foo.reset();
  }
}
const fooTopology = (more = {}) => ({
  exchanges: [{ name: `${prefix}.foo.x`, type: 'topic', autoDelete: true }],
  queues: [{ name: `${prefix}.foo.q`, autoDelete: true, subscribe: true, ...more.queue }],
  bindings: [{ exchange: `${prefix}.foo.x`, target: `${prefix}.foo.q`, keys: ['k.#'] }], connection: more.connection,
});
checks['foo-foo-mq: publish and batch acknowledgement'] = () => fooed(fooTopology(), async () => {
  const seen = [];
  foo.handle('T', (message) => { seen.push(message.body.n); message.ack(); });
  for (let n = 0; n < 30; n++) await foo.publish(`${prefix}.foo.x`, { type: 'T', routingKey: 'k.n', body: { n } });
  await until(() => seen.length === 30, 'the last');
  await until(async () => (await queueOf(`${prefix}.foo.q`)).messages === 0, 'an empty queue');
});
named((name) => fooed(fooTopology({ connection: name.endsWith('direct') ? { replyQueue: 'rabbitmq' } : {} }), async () => {
  foo.handle('Ask', (request) => request.reply({ twice: 2 * request.body.n }));
  const reply = await foo.request(`${prefix}.foo.x`, { type: 'Ask', routingKey: 'k', body: { n: 21 }, replyTimeout: 60000 });
  assert.equal(reply.body.twice, 42);
  reply.ack();
}), 'foo-foo-mq: request, reply queue', 'foo-foo-mq: request, direct');
checks['foo-foo-mq: reject, unhandled, returned'] = () => fooed(fooTopology({ queue: { limit: 5 } }), async () => {
  const told = new Promise((done) => foo.onUnhandled((message) => { message.ack(); done(message.type); }));
  await foo.publish(`${prefix}.foo.x`, { type: 'Nobody', routingKey: 'k', body: 1 });
  assert.equal(await told, 'Nobody');
  const back = new Promise((done) => foo.onReturned((message) => done(message.type)));
  await foo.publish(`${prefix}.foo.x`, { type: 'Lost', routingKey: 'none', mandatory: true, body: 1 });
  assert.equal(await back, 'Lost');
});

// moleculer
const { ServiceBroker } = require('moleculer');
async function moleculed(nodes, work) {
  const namespace = `${prefix}.${Math.random().toString(36).slice(2)}`;
  const brokers = nodes.map(({ services = [], ...options }, at) => {
    const one = new ServiceBroker({ namespace, nodeID: `node-${at}`, logger: false, heartbeatInterval: 5, heartbeatTimeout: 60, requestTimeout: 60000,
      transporter: { type: 'AMQP', options: { url, eventTimeToLive: 5000, heartbeatTimeToLive: 5000, prefetch: 1, autoDeleteQueues: true } }, ...options });
    services.forEach((service) => one.createService(service));
    return one;
  });
  try {
    await Promise.all(brokers.map((one) => one.start()));
    const names = nodes.flatMap(({ services = [] }) => services.map((one) => one.name));
    await brokers[0].waitForServices([...new Set(names)], 60000);
    await work(brokers);
  } finally {
    await Promise.all(brokers.map((one) => one.stop()));
  }
}
const adder = (seen = []) => ({ name: 'math', actions: { add: { handler(context) { return { sum: context.params.a + context.params.b, by: this.broker.nodeID }; } } },
  events: { 'told.**'(context) { seen.push([this.broker.nodeID, context.params]); } } });
named((name) => moleculed([{ disableBalancer: name.endsWith('queues') }, { disableBalancer: name.endsWith('queues'), services: [adder()] },
  { disableBalancer: name.endsWith('queues'), services: [adder()] }], async ([first]) => {
  await until(() => first.registry.nodes.list({ onlyAvailable: true }).length === 3, 'all nodes');
  const all = await Promise.all([...Array(30).keys()].map((n) => first.call('math.add', { a: n, b: 1 })));
  assert.deepEqual(all.map((one) => one.sum), [...Array(30).keys()].map((n) => n + 1));
  await until(async () => (await first.call('math.add', { a: 1, b: 1 })).by === 'node-1', 'an answer of node 1');
  await until(async () => (await first.call('math.add', { a: 1, b: 1 })).by === 'node-2', 'an answer of node 2');
}), 'moleculer: calls, balanced by moleculer', 'moleculer: calls, balanced by queues');
checks['moleculer: events: one of a group, broadcast'] = async () => {
  const seen = [];
  await moleculed([{}, { services: [adder(seen)] }, { services: [adder(seen)] }], async ([first]) => {
    await until(() => first.registry.getServiceList({ onlyAvailable: true }).filter((one) => one.name === 'math').length === 2, 'both services');
    await first.emit('told.one', 'once');
    await until(() => seen.length === 1, 'the event');
    await first.broadcast('told.all', 'all');
    await until(() => seen.length === 3, 'the broadcast');
    await sleep(300);
    assert.equal(seen.length, 3);
  });
};
checks['moleculer: ping, a node that leaves'] = () => moleculed([{}, { services: [adder()] }], async ([first, second]) => {
  assert.ok((await first.ping('node-1', 60000)).elapsedTime >= 0);
  await second.stop();
  await until(() => first.registry.nodes.list({ onlyAvailable: true }).length === 1, 'its leave');
});

run(checks);
