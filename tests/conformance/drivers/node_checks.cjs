// What the drivers for Node share: checks by name, one after the other, and the node's HTTP API.
// Prints `ok NAME` or `FAILED NAME reason` a check, and ends the process: clients keep it alive.
const prefix = 'suite.node.' + process.pid;
const sleep = (ms) => new Promise((done) => setTimeout(done, ms));

/** Ask until `look` answers something true; 60 s at most. */
async function until(look, what = 'it') {
  for (const end = Date.now() + 60000; Date.now() < end; await sleep(100)) {
    const found = await look();
    if (found) return found;
  }
  throw new Error(`${what} did not come`);
}

/** Ask the HTTP API; an answer without a body is null. */
async function api(verb, path, body) {
  const place = new URL(process.env.BROKER_API);
  const login = Buffer.from(`${place.username}:${place.password}`).toString('base64');
  const answer = await fetch(`http://${place.host}/api/${path}`, {
    method: verb,
    headers: { authorization: `Basic ${login}`, 'content-type': 'application/json' },
    body: body && JSON.stringify(body),
  });
  if (!answer.ok) throw new Error(`${verb} ${path}: ${answer.status}`);
  const text = await answer.text();
  return text ? JSON.parse(text) : null;
}

/** Close over HTTP each connection that calls itself `name`, as an operator does. */
async function cut(name) {
  const called = (one) => one.user_provided_name === name || one.client_properties?.connection_name === name;
  const open = await until(async () => {
    const found = (await api('GET', 'connections')).filter(called);
    return found.length > 0 && found;
  }, `a connection called ${name}`);
  for (const one of open) await api('DELETE', `connections/${encodeURIComponent(one.name)}`);
}

async function run(checks, before = async () => {}) {
  process.on('unhandledRejection', (error) => console.log(`# unhandled: ${error?.message}`));
  await before();
  for (const [name, check] of Object.entries(checks)) {
    let timer;
    const late = new Promise((_, fail) => { timer = setTimeout(() => fail(new Error('took 120 s')), 120000); });
    try {
      await Promise.race([check(), late]);
      console.log('ok ' + name);
    } catch (error) {
      console.log(`FAILED ${name} ${String(error?.message ?? error).split('\n')[0]}`);
    }
    clearTimeout(timer);
  }
  process.exit(0);
}

module.exports = { api, cut, prefix, run, sleep, until };
