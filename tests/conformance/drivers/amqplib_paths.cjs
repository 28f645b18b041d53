// amqplib (Node) against BROKER_URL: its usual paths. Prints `ok NAME` or `FAILED NAME reason` a check.
const amqp = require('amqplib');
const assert = require('node:assert');

const url = process.env.BROKER_URL;
const prefix = 'suite.node.' + process.pid;
const checks = {};

async function onChannel(work, confirming = false) {
  const connection = await amqp.connect(url);
  connection.on('error', () => {});
  try {
    const channel = await (confirming ? connection.createConfirmChannel() : connection.createChannel());
    channel.on('error', () => {});
    await work(channel, connection);
  } finally {
    await connection.close().catch(() => {});
  }
}
const own = async (channel, options = {}) => (await channel.assertQueue('', { exclusive: true, ...options })).queue;
const first = (channel, queue, options) => new Promise((done, fail) => channel.consume(queue, done, options).catch(fail));

checks['declare-and-delete'] = () => onChannel(async (channel) => {
  assert.equal((await channel.assertQueue(prefix, { durable: true, maxLength: 10 })).queue, prefix);
  assert.equal((await channel.checkQueue(prefix)).messageCount, 0);
  await channel.deleteQueue(prefix);
});
checks['missing-queue-is-404'] = () => onChannel((channel) => assert.rejects(channel.checkQueue(prefix + '.none'), /404/));
checks['inequivalent-is-406'] = () => onChannel(async (channel) => {
  await channel.assertQueue(prefix + '.x', { exclusive: true, durable: false, autoDelete: true });
  await assert.rejects(channel.assertQueue(prefix + '.x', { exclusive: true, durable: false }), /406/);
});
checks['confirms'] = () => onChannel(async (channel) => {
  const queue = await own(channel);
  for (let n = 0; n < 500; n++) channel.sendToQueue(queue, Buffer.from('' + n), { persistent: true });
  await channel.waitForConfirms();
  assert.equal((await channel.checkQueue(queue)).messageCount, 500);
}, true);
checks['mandatory-return'] = () => onChannel(async (channel) => {
  const returned = new Promise((done) => channel.once('return', done));
  channel.publish('amq.direct', prefix + '.none', Buffer.from('x'), { mandatory: true });
  assert.equal((await returned).fields.replyCode, 312);
});
checks['headers-and-types'] = () => onChannel(async (channel) => {
  const headers = { number: 1, text: 'é', yes: true, list: [1, 'two'], table: { none: null } };
  const queue = await own(channel);
  channel.sendToQueue(queue, Buffer.from('x'), { headers, priority: 3 });
  assert.deepEqual((await first(channel, queue, { noAck: true })).properties.headers, headers);
});
checks['four-exchange-types'] = () => onChannel(async (channel) => {
  for (const [type, key, binding, args, options] of [
    ['direct', 'k', 'k'], ['topic', 'a.b.c', 'a.#'], ['fanout', '', ''],
    ['headers', '', '', { 'x-match': 'all', h: 1 }, { headers: { h: 1 } }]]) {
    const exchange = `${prefix}.${type}`;
    await channel.assertExchange(exchange, type, { autoDelete: true });
    const queue = await own(channel);
    await channel.bindQueue(queue, exchange, binding, args);
    channel.publish(exchange, key, Buffer.from(type), options);
    assert.equal((await first(channel, queue, { noAck: true })).content.toString(), type);
  }
});
checks['nack-redelivers'] = () => onChannel(async (channel) => {
  const queue = await own(channel);
  channel.sendToQueue(queue, Buffer.from('x'));
  const flags = [];
  await new Promise((done) => channel.consume(queue, (message) => {
    flags.push(message.fields.redelivered);
    if (flags.length === 1) channel.nack(message); else { channel.ack(message); done(); }
  }));
  assert.deepEqual(flags, [false, true]);
});
checks['dead-letters'] = () => onChannel(async (channel) => {
  const grave = await own(channel);
  const queue = await own(channel, { messageTtl: 50, deadLetterExchange: '', deadLetterRoutingKey: grave });
  channel.sendToQueue(queue, Buffer.from('x'));
  const { headers } = (await first(channel, grave, { noAck: true })).properties;
  assert.equal(headers['x-death'][0].reason, 'expired');
  assert.equal(headers['x-first-death-queue'], queue);
});
checks['deleted-queue-cancels'] = () => onChannel(async (channel, connection) => {
  const queue = (await channel.assertQueue('', { autoDelete: true })).queue;
  let told;
  const cancelled = new Promise((done) => { told = done; });
  await channel.consume(queue, told);
  await (await connection.createChannel()).deleteQueue(queue);
  assert.equal(await cancelled, null);
});
checks['direct-reply-to'] = () => onChannel(async (channel) => {
  const queue = await own(channel);
  const answer = first(channel, 'amq.rabbitmq.reply-to', { noAck: true });
  await channel.consume(queue, (message) => channel.sendToQueue(message.properties.replyTo, Buffer.from('pong')), { noAck: true });
  channel.sendToQueue(queue, Buffer.from('ping'), { replyTo: 'amq.rabbitmq.reply-to' });
  assert.equal((await answer).content.toString(), 'pong');
});
checks['refused-logins'] = async () => {
  const wrong = new URL(url);
  wrong.password = 'wrong';
  await assert.rejects(amqp.connect(wrong.href), /403|ACCESS/);
  const nowhere = new URL(url);
  nowhere.pathname = '/' + prefix;
  await assert.rejects(amqp.connect(nowhere.href), /530|NOT_ALLOWED|ConnectionClose/);
};

(async () => {
  for (const [name, check] of Object.entries(checks)) {
    try {
      let timer;
      const late = new Promise((_, fail) => { timer = setTimeout(() => fail(new Error('took 15 s')), 15000); });
      await Promise.race([check(), late]);
      clearTimeout(timer);
      console.log('ok ' + name);
    } catch (error) {
      console.log(`FAILED ${name} ${String(error.message).split('\n')[0]}`);
    }
  }
  process.exit(0);
})();
