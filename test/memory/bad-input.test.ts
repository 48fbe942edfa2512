import test from 'ava';
import { ClosedError, type Ephemeral, InvalidOptionError, InvalidPathError } from '../../src/index.ts';
import { MemoryEtcd } from '../../src/testing.ts';
import { Seen } from '../support/listings.ts';
import { MemoryScene } from '../support/memory-clients.ts';

/** Whatever a caller in JavaScript may pass. */
const as = <T>(value: unknown): T => value as T;

type Call = (client: Ephemeral, path: string, options?: object) => Promise<unknown>;

/** A list that is watched, as a promise of its first listing. */
const watched: Call = async (client, path, options) => {
  for await (const listing of client.list(path, { watch: true, missing: 'wait', ...options })) return listing;
};

const CALLS: Readonly<Record<string, Call>> = {
  addDir: (client, path, options) => client.addDir(path, options),
  removeDir: (client, path, options) => client.removeDir(path, options),
  addKey: (client, path, options) => client.addKey(path, 'v', options),
  get: (client, path, options) => client.get(path, options),
  list: (client, path, options) => client.list(path, { ...options, watch: false }),
  'list with watch': watched,
};

const BAD_PATHS: readonly (readonly [path: unknown, message: RegExp])[] = [
  ['', /not absolute.*start it with "\/"/],
  ['services', /"services" is not absolute/],
  ['./services', /not absolute/],
  ['//', /empty segment/],
  ['//a', /empty segment/],
  ['/a//b', /empty segment/],
  ['/a//', /empty segment/],
  ['/a/./b', /segment "\."/],
  ['/a/..', /segment "\.\."/],
  ['/../a', /segment "\.\."/],
  ['/_dirs', /"_", which is reserved/],
  ['/a/_b', /"_", which is reserved/],
  ['/a/b\0', /control or replacement/],
  ['/a\n', /control or replacement/],
  ['/\u001b[2J', /control or replacement/],
  ['/a\u007f', /control or replacement/],
  ['/a\u0085', /control or replacement/],
  ['/a\ufffd', /control or replacement/],
  ['/a\ud800', /well-formed/],
  [undefined, /path is text, got undefined/],
  [null, /path is text, got null/],
  [7, /path is text, got number/],
  [['/a'], /path is text, got object/],
];

for (const [name, call] of Object.entries(CALLS)) {
  test(`${name}: a bad path is an InvalidPathError that names its fault, and the store hears nothing`, async (t) => {
    const { client, traffic } = await new MemoryScene().connect();
    const calls = traffic.calls;
    for (const [path, message] of BAD_PATHS) {
      await t.throwsAsync(async () => call(client, as(path)), {
        instanceOf: InvalidPathError,
        code: 'INVALID_PATH',
        message,
      });
    }
    t.is(traffic.calls, calls);
    t.is(traffic.watchStreams + traffic.keepAliveStreams, 0);
  });

  test(`${name}: an option that is unknown or of the wrong kind is an InvalidOptionError`, async (t) => {
    const { client, traffic } = await new MemoryScene().connect();
    const calls = traffic.calls;
    const invalid = { instanceOf: InvalidOptionError, code: 'INVALID_OPTION' };
    const unknown = await t.throwsAsync(async () => call(client, '/a', { singal: 1 }), invalid);
    t.regex(unknown?.message ?? '', /no option "singal"; it takes .*signal/);
    await t.throwsAsync(async () => call(client, '/a', { signal: 5 }), {
      ...invalid,
      message: /signal must be an AbortSignal/,
    });
    t.is(traffic.calls, calls);
  });

  test(`${name}: after close it is a ClosedError that says what to do`, async (t) => {
    const scene = new MemoryScene();
    const { client } = await scene.connect();
    const inner = client.withNamespace('/inner');
    await client.close();
    const before = scene.dump();
    for (const closed of [client, inner]) {
      const error = await t.throwsAsync(async () => call(closed, '/a'), { instanceOf: ClosedError, code: 'CLOSED' });
      t.regex(error?.message ?? '', /closed: make a new one/);
    }
    t.deepEqual(scene.dump(), before);
  });

  test(`${name}: a signal that is aborted already rejects with its reason, and nothing is done`, async (t) => {
    const scene = new MemoryScene();
    const { client, traffic } = await scene.connect();
    await client.addDir('/a');
    const [before, calls, reason] = [scene.dump(), traffic.calls, new Error('no more')];
    const error = await t.throwsAsync(async () => call(client, '/a/b', { signal: AbortSignal.abort(reason) }));
    t.is(name === 'list with watch' ? error?.cause : error, reason);
    t.deepEqual([scene.dump(), traffic.calls], [before, calls]);
  });

  for (const [fault, order] of [
    ['nothing comes back', (scene: MemoryScene, store) => scene.server.partition(store)],
    ['the store is down', (scene: MemoryScene) => scene.server.stop()],
    ['a member stands still', (scene: MemoryScene, store) => scene.server.freeze(store)],
  ] satisfies [string, (scene: MemoryScene, store: Awaited<ReturnType<MemoryScene['connect']>>['store']) => void][]) {
    test(`${name}: a signal that is aborted while ${fault} rejects with its reason at once`, async (t) => {
      const scene = new MemoryScene();
      const { client, store } = await scene.connect();
      await client.addDir('/a');
      await scene.settle();
      order(scene, store);
      await scene.settle();
      const [stop, reason] = [new AbortController(), new Error('no more')];
      const rejection = t.throwsAsync(async () => call(client, '/a/b', { signal: stop.signal }));
      await scene.advance(1.7);
      stop.abort(reason);
      const error = await rejection;
      t.is(name === 'list with watch' ? error?.cause : error, reason);
      scene.server.start();
      scene.server.heal();
      scene.server.thaw(store);
      await scene.advance(30);
      t.is(scene.key('/a/b'), undefined, 'no key of a call that was given up stays');
      t.is(client.state, 'connected');
      await client.close();
    });
  }
}

test('a signal may be aborted with no reason of its own, or time out', async (t) => {
  const scene = new MemoryScene();
  const { client, store } = await scene.connect();
  scene.server.partition(store);
  const stop = new AbortController();
  const rejection = t.throwsAsync(client.addDir('/a', { signal: stop.signal }), { any: true, name: 'AbortError' });
  stop.abort();
  await rejection;
  await t.throwsAsync(client.addDir('/a', { signal: AbortSignal.timeout(5) }), { any: true, name: 'TimeoutError' });
});

test('an update that is given up on, before or while it is made, rejects with the reason of its signal', async (t) => {
  const scene = new MemoryScene();
  const { client, store } = await scene.connect();
  const registration = await client.addKey('/k', '1');
  const [stop, reason] = [new AbortController(), new Error('no more')];
  t.is(await t.throwsAsync(registration.update('2', { signal: AbortSignal.abort(reason) })), reason);
  t.deepEqual([registration.value, scene.value('/k'), registration.state], ['1', '1', 'registered']);
  scene.server.partition(store);
  const rejection = t.throwsAsync(registration.update('3', { signal: stop.signal }));
  await scene.advance(0.5);
  stop.abort(reason);
  t.is(await rejection, reason);
  scene.server.heal();
  await scene.advance(3);
  t.is(scene.value('/k'), registration.value, 'what it says is what is stored');
  await client.close();
  await t.throwsAsync(registration.update('4'), { instanceOf: ClosedError });
});

test('the root can be listed but is no place for a key or a directory', async (t) => {
  const { client } = await new MemoryScene().connect();
  const invalid = { instanceOf: InvalidPathError, message: /root.*name something below it/ };
  await t.throwsAsync(client.addDir('/'), invalid);
  await t.throwsAsync(client.removeDir('/'), invalid);
  await t.throwsAsync(client.addKey('/', 'v'), invalid);
  await t.throwsAsync(client.get('/'), invalid);
  t.deepEqual((await client.list('/')).children, []);
});

test('a value that is no text is refused before anything is written', async (t) => {
  const scene = new MemoryScene();
  const { client } = await scene.connect();
  const invalid = { instanceOf: InvalidOptionError, message: /\/k must be text/ };
  for (const value of [undefined, null, 5, {}, Buffer.from('v')]) {
    await t.throwsAsync(client.addKey('/k', as(value)), invalid);
  }
  t.deepEqual(scene.dump(), []);
  const registration = await client.addKey('/k', 'v');
  await t.throwsAsync(registration.update(as(5)), invalid);
  t.is(scene.value('/k'), 'v');
});

test('options of the wrong kind are refused with what they may be', async (t) => {
  const { client, traffic } = await new MemoryScene().connect();
  const calls = traffic.calls;
  const refuses = (call: () => unknown, message: RegExp) =>
    t.throwsAsync(async () => call(), { instanceOf: InvalidOptionError, message });
  await refuses(() => client.addDir('/a', as({ exclusive: 1 })), /exclusive must be true or false, got number/);
  await refuses(() => client.addDir('/a', as(null)), /options of addDir must be an object, got null/);
  await refuses(() => client.addDir('/a', as('exclusive')), /must be an object/);
  await refuses(() => client.addDir('/a', as([])), /must be an object, got an array/);
  await refuses(
    () => client.addKey('/a', 'v', as({ heartbeat: 'no' })),
    /heartbeat must be 'lease' or 'put', got "no"/,
  );
  await refuses(() => client.addKey('/a', 'v', as({ wait: 'no' })), /wait must be true or false/);
  await refuses(() => client.addKey('/a', 'v', as({ until: {} })), /until must be an AbortSignal/);
  await refuses(() => client.list('/a', as({ values: 1 })), /values must be true or false/);
  await refuses(() => client.list('/a', as({ watch: 1 })), /watch must be true or false/);
  await refuses(() => client.list('/a', as({ via: 'direct' })), /no option "via"/);
  await refuses(() => client.list('/a', as({ watch: true, via: 'x' })), /via must be 'mirror' or 'direct', got "x"/);
  await refuses(() => client.list('/a', as({ watch: true, missing: 0 })), /missing must be 'error' or 'wait'/);
  await refuses(() => client.list('/a', as(null)), /must be an object/);
  await refuses(() => client.withNamespace(as(5)), /namespace must be text/);
  await refuses(() => client.withNamespace('\ud800'), /namespace must be text/);
  t.is(traffic.calls, calls);
});

test('options of a client that cannot be are refused, and the password in none of them is told', async (t) => {
  const etcd = new MemoryEtcd();
  const refuses = (options: object, message: RegExp) =>
    t.throwsAsync(etcd.connect(as(options)), { instanceOf: InvalidOptionError, message });
  for (const ttl of [0, -1, 1.5, 9_000_000_001, Number.NaN, Number.POSITIVE_INFINITY, '5', null]) {
    await refuses({ ttl }, /ttl must be a whole number of seconds from 1 to 9000000000/);
  }
  for (const staleAfter of [0, -1, Number.NaN, '1'])
    await refuses({ staleAfter }, /staleAfter must be a positive number/);
  await refuses({ heartbeat: 'tcp' }, /heartbeat/);
  await refuses({ candidate: 1 }, /candidate must be true or false/);
  await refuses({ namespace: 5 }, /namespace must be text/);
  await refuses({ stats: {} }, /stats must have the methods bumpSum, bumpTime/);
  await refuses({ stats: null }, /stats/);
  await refuses({ logger: { info() {}, warn() {} } }, /logger must have the method error/);
  await refuses({ hots: 'http://a' }, /no option "hots"; it takes namespace, ttl/);
  await refuses([], /must be an object/);
  await t.throwsAsync(async () => new MemoryEtcd(as({ clock: 'wall' })), { instanceOf: InvalidOptionError });
});

test('close may be called at any moment, with every call under way, and ends each of them', async (t) => {
  for (const fault of ['none', 'partition', 'stop', 'freeze'] as const) {
    const scene = new MemoryScene();
    const { client, store } = await scene.connect();
    await client.addKey('/d/k', 'v');
    const kept = new Seen(client.list('/d', { watch: true }));
    await scene.settle();
    if (fault === 'partition') scene.server.partition(store);
    if (fault === 'stop') scene.server.stop();
    if (fault === 'freeze') scene.server.freeze(store);
    await scene.settle();
    const unborn = new Seen(client.list('/e', { watch: true, missing: 'wait' }));
    const outcomes = Promise.allSettled(Object.values(CALLS).map((call) => call(client, '/a/b')));
    const closing = client.close();
    await scene.advance(2);
    await closing;
    await outcomes;
    t.true(kept.completed && unborn.completed, fault);
    t.is(client.state, 'closed');
  }
});

test('a value that would not be the same when it is read again is refused', async (t) => {
  const memory = new MemoryEtcd();
  const client = await memory.connect();
  await t.throwsAsync(client.addKey('/a', '\ud800'), { instanceOf: InvalidOptionError, message: /Unicode/ });
  const registration = await client.addKey('/a', 'v');
  await t.throwsAsync(registration.update('\udc00'), { instanceOf: InvalidOptionError });
  t.is(await client.get('/a'), 'v');
  await client.close();
});
