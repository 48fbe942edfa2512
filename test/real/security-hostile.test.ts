import { spawn } from 'node:child_process';
import test, { type ExecutionContext } from 'ava';
import { EtcdStore } from '../../src/etcd/etcd-store.ts';
import { changes, EtcdEphemeral, InvalidPathError, type Listing, type ListingChange } from '../../src/index.ts';
import { type EtcdProcess, startEtcd } from '../support/etcd-process.ts';
import { see } from '../support/listings.ts';
import { realWorld, Space } from '../support/space.ts';
import { until, within } from '../support/wait.ts';

const CALL = { timeoutMs: 10_000 };

let etcd: EtcdProcess;
test.before(async () => {
  etcd = await startEtcd();
});
test.after.always(() => etcd?.destroy());

/** Names that a path may hold, and that somebody may stumble over. */
const ODD = [
  'constructor',
  'toString',
  'hasOwnProperty',
  'valueOf',
  'length',
  'then',
  ' ',
  '-rf',
  '..a',
  '$(reboot)',
  `'"\`\\`,
  '%2e%2e',
  '\u202egnp.exe',
  'zero\u200bwidth',
  'e\u0301',
  '\u00e9',
  '\u{1f469}\u200d\u{1f4bb}',
  'x'.repeat(60_000),
];
/** Names that no path may hold. */
const IMPOSSIBLE = [
  '__proto__',
  '_x',
  '',
  '.',
  '..',
  'a\u0000',
  '\u001b[2J',
  'a\nb',
  '\u009b2J',
  '\ufffd',
  'y'.repeat(70_000),
];

const sorted = (names: readonly string[]) => [...names].sort();

/** What no string of JavaScript can name. */
async function putBytes(key: Buffer, value: Buffer): Promise<void> {
  const body = JSON.stringify({ key: key.toString('base64'), value: value.toString('base64') });
  const answer = await fetch(`${etcd.endpoint}/v3/kv/put`, { method: 'POST', body });
  if (!answer.ok) throw new Error(await answer.text());
}

async function putMany(keys: readonly string[]): Promise<void> {
  const store = new EtcdStore({ hosts: etcd.endpoint });
  await store.connect(CALL);
  for (let start = 0; start < keys.length; start += 100) {
    const success = keys.slice(start, start + 100).map((key) => ({ type: 'put', key, value: 'v' }) as const);
    await store.txn({ compares: [], success }, CALL);
  }
  store.close();
}

async function removeAll(prefix: string): Promise<void> {
  const store = new EtcdStore({ hosts: etcd.endpoint });
  await store.connect(CALL);
  await store.txn({ compares: [], success: [{ type: 'delete', target: { prefix } }] }, CALL);
  store.close();
}

const bytes = (text: string) => Buffer.from(text, 'latin1');

for (const via of ['direct', 'mirror'] as const) {
  test(`odd names that others write are listed as they are, impossible ones are not, ${via} (A5)`, async (t) => {
    const space = await Space.open(t, realWorld(etcd));
    await space.put('/d/first', 'v');
    const client = await space.connect();
    const seen = see(t, client.list('/d', { watch: true, via, values: true }));
    const told: ListingChange<Listing>[] = [];
    const subscription = client
      .list('/d', { watch: true, via, values: true })
      .pipe(changes())
      .subscribe((change) => told.push(change));
    t.teardown(() => subscription.unsubscribe());
    await seen.untilNames('first');
    for (const name of [...ODD, ...IMPOSSIBLE]) await space.put(`/d/${name}`, `of ${name.slice(0, 20)}`);
    await putBytes(bytes(`${space.namespace}/d/\xff\xfe`), bytes('v'));
    await putBytes(bytes(`${space.namespace}/d/bytes`), bytes('\xff\x00\xfe'));
    const names = sorted([...ODD, 'bytes', 'first']);
    const listing = await until(() => seen.last?.children.length === names.length && seen.last, 'all names');
    t.deepEqual(listing.children, names);
    const once = await client.list('/d', { values: true });
    t.deepEqual(once.children, names);
    t.deepEqual([...once.entries], [...(listing as typeof once).entries]);
    for (const name of ODD) t.is(once.entries.get(name)?.value, `of ${name.slice(0, 20)}`);
    t.is(once.entries.get('bytes')?.value, '\ufffd\u0000\ufffd');
    const json = JSON.parse(JSON.stringify(once));
    t.deepEqual(Object.keys(json.entries).sort(), names);
    t.is(json.entries.constructor.value, 'of constructor');
    for (const name of ODD) await space.remove(`/d/${name}`);
    await seen.untilNames('bytes first');
    const added = told.flatMap((change) => change.added);
    t.deepEqual(sorted(added), names);
    t.deepEqual(sorted(told.flatMap((change) => change.removed)), sorted(ODD));
    t.deepEqual(
      told.flatMap((change) => change.changed),
      [],
    );
  });
}

test('odd names are registered, read and removed like any other, and impossible ones are refused (A5)', async (t) => {
  const space = await Space.open(t, realWorld(etcd));
  const client = await space.connect();
  const registrations = await Promise.all(ODD.map((name) => client.addKey(`/d/${name}`, '1')));
  for (const registration of registrations) await registration.update('2');
  for (const name of ODD) t.is(await client.get(`/d/${name}`), '2');
  t.deepEqual((await client.list('/d')).children, sorted(ODD));
  for (const name of ODD) await client.addDir(`/dirs/${name}`);
  t.deepEqual((await client.list('/dirs')).directories, sorted(ODD));
  for (const registration of registrations) await registration.remove();
  t.deepEqual(await space.keys('/d/'), []);
  for (const name of IMPOSSIBLE.filter((name) => name !== '')) {
    const error = await t.throwsAsync(client.addKey(`/d/${name}`, 'v'), { instanceOf: InvalidPathError });
    t.true((error?.message.length ?? 0) < 1_000, 'the message does not grow with the path');
  }
});

test('a storm of long names passes through the mirror, also where all are deleted at once (A5)', async (t) => {
  const space = await Space.open(t, realWorld(etcd));
  // Three bytes a character: what is counted must be bytes.
  const names = Array.from({ length: 150 }, (_, i) => `long-${i}-${'\u65e5'.repeat(5_000)}`);
  await space.put('/d/a', 'v');
  const client = await space.connect();
  const seen = see(t, client.list('/d', { watch: true }));
  await seen.untilNames('a');
  await until(async () => (await space.keys('/_watcherDir/')).length > 1, 'the mirror');
  const isMirrored = async () =>
    (await space.keys('/_watcherDir/d//')).length === (seen.last?.children.length ?? 0) + 1;
  await Promise.all(names.map((name) => space.put(`/d/${name}`, 'v')));
  await until(() => seen.last?.children.length === names.length + 1, 'all names', 60_000);
  await until(isMirrored, 'the shadow of all', 60_000);
  await removeAll(`${space.namespace}/d/long-`);
  await seen.untilNames('a');
  await until(isMirrored, 'the shadow to be small again', 60_000);
  await space.put('/d/b', 'v');
  t.is((await seen.untilNames('a b')).status, 'live');
});

test('what a stranger writes in the place of a marker ends no watcher (A5)', async (t) => {
  const space = await Space.open(t, realWorld(etcd));
  await space.put('/d/a', 'v');
  const master = await space.connect();
  const watcher = await space.connect({ candidate: false });
  const seen = [master, watcher].map((client) => see(t, client.list('/d', { watch: true, values: true })));
  for (const one of seen) await one.untilNames('a');
  const marker = '/_watcherValues/d//';
  const whole = await until(async () => (await space.keys(marker))[0], 'the marker');
  const wire = JSON.parse(Buffer.from(whole.value).toString());
  const spoilt = [
    { values: [5] },
    { values: [['a', 1, 1, 5]] },
    { values: [[{}, 1, 1, 'v']] },
    { values: [['a', 1, 1, 'v', 'latin1']] },
    { touched: [[5], [null], [], []] },
    { dirs: { ...wire.dirs, touched: [[{}], []] } },
    { lock: 7 },
  ];
  for (const part of spoilt) {
    const revision = (await space.put('/other', 'v')) - 1;
    const dirs = { from: 0, to: revision, touched: [[], []] };
    const text = JSON.stringify({ ...wire, from: 0, to: revision, dirs, ...part });
    await space.put(marker, text);
  }
  await space.put('/d/b', 'v');
  for (const one of seen) await one.untilNames('a b');
  t.deepEqual(
    seen.filter(({ ended }) => ended),
    [],
  );
});

interface Printed {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

function start(t: ExecutionContext, args: readonly string[]) {
  const child = spawn(process.execPath, ['--import', 'tsx', 'src/cli/main.ts', ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, ETCDCTL_ENDPOINTS: etcd.endpoint },
  });
  t.teardown(() => child.kill('SIGKILL'));
  const text = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const) {
    child[name].on('data', (chunk) => {
      text[name] += chunk;
    });
  }
  const closed = new Promise<number | null>((resolve) => child.once('close', resolve));
  return { text, child, closed: () => within(closed, args.join(' ')) };
}

async function ephemeral(t: ExecutionContext, args: readonly string[]): Promise<Printed> {
  const { text, closed } = start(t, args);
  return { code: await closed(), ...text };
}

/** What a terminal obeys, and what hides: nothing of it may be in what is printed line by line. */
const HARMFUL = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u;
const harmless = (text: string) => text.split(/[\n\t]/).every((part) => !HARMFUL.test(part));

test('what others wrote comes out of ls, ls --watch and stat escaped, and out of --json as it is (A5)', async (t) => {
  const space = await Space.open(t, realWorld(etcd));
  const value = '\u001b]0;owned\u0007\u009b2J\u202e\u200b\nsecond line';
  const name = '\u202eevil\u200b';
  await space.put(`/d/${name}`, value);
  await space.put('/d/\u001b[2J', value);
  const flags = ['--namespace', space.namespace];
  const shown = '\\u202eevil\\u200b\t\\x1b]0;owned\\x07\\x9b2J\\u202e\\u200b\\nsecond line\n';
  const ls = await ephemeral(t, [...flags, 'ls', '/d', '--values']);
  t.deepEqual(ls, { code: 0, stdout: shown, stderr: '' });
  const watching = start(t, [...flags, 'ls', '/d', '--values', '--watch']);
  await until(() => watching.text.stdout === shown, 'the first list');
  await space.put(`/d/${name}2`, value);
  await until(() => watching.text.stdout === `${shown}+ ${shown.replace('\t', '2\t')}`, 'the change');
  watching.child.kill('SIGTERM');
  await watching.closed();
  const stat = await ephemeral(t, [...flags, 'stat', `/d/${name}`]);
  t.true(harmless(stat.stdout));
  t.regex(stat.stdout, /^value\t\\x1b/m);
  for (const args of [
    ['ls', '/d', '--values'],
    ['stat', `/d/${name}`],
    ['get', `/d/${name}`],
  ]) {
    const { stdout } = await ephemeral(t, [...flags, '--json', ...args]);
    t.true(harmless(stdout), 'JSON as well does no harm to a terminal');
    const json = JSON.parse(stdout);
    t.is(json.entries?.[name]?.value ?? json.key?.value ?? json.value, value);
  }
  t.is((await ephemeral(t, [...flags, 'get', `/d/${name}`])).stdout, `${value}\n`, 'a pipe gets the value itself');
});

test('100,000 children are listed by the command, once and live, and told of by stat (A5)', async (t) => {
  t.timeout(180_000);
  const space = await Space.open(t, realWorld(etcd));
  const count = 100_000;
  await putMany(Array.from({ length: count }, (_, i) => `${space.namespace}/d/${i}`));
  const flags = ['--namespace', space.namespace];
  const { code, stdout } = await ephemeral(t, [...flags, 'ls', '/d', '--values']);
  t.is(code, 0);
  t.is(stdout.split('\n').length, count + 1);
  const json = JSON.parse((await ephemeral(t, [...flags, 'ls', '/d', '--json'])).stdout);
  t.is(json.children.length, count);
  t.is(JSON.parse((await ephemeral(t, [...flags, 'stat', '/d', '--json'])).stdout).directory.children, count);
  const client = await EtcdEphemeral.connect({ hosts: etcd.endpoint, namespace: space.namespace });
  t.teardown(() => client.close());
  const seen = see(t, client.list('/d', { watch: true }));
  const live = await until(() => seen.last?.children.length === count && seen.last, 'all children');
  await space.put('/d/one-more', 'v');
  const after = await until(() => seen.last?.children.includes('one-more') && seen.last, 'one more');
  t.is(after.children.length, live.children.length + 1);
});
