import type { TestFn } from 'ava';
import {
  ClosedError,
  changes,
  type Listing,
  type ListingChange,
  NotADirectoryError,
  PathNotFoundError,
  WatchStoppedError,
} from '../../src/index.ts';
import { see } from '../support/listings.ts';
import { Space, type World } from '../support/space.ts';
import { until } from '../support/wait.ts';

const WAYS = ['mirror', 'direct'] as const;

/** Live lists, mirrored and direct. */
export function listContract(test: TestFn, world: () => World): void {
  for (const via of WAYS) {
    test(`${via}: a list begins with what is there and follows what comes and goes`, async (t) => {
      const space = await Space.open(t, world());
      const [watcher, other] = [await space.connect(), await space.connect()];
      const a = await other.addKey('/d/a', '');
      const seen = see(t, watcher.list('/d', { watch: true, via }));
      await seen.untilNames('a');
      t.is(seen.listings[0]?.children.join(), 'a', 'the first listing is the directory as it is');
      await other.addKey('/d/b', '');
      await seen.untilNames('a b');
      await other.addDir('/d/c');
      const listing = await seen.untilNames('a b c');
      t.deepEqual(listing.directories, ['c']);
      const below = await other.addKey('/d/b/x/y', '');
      await until(() => seen.last?.directories.join() === 'b,c', 'b to be a directory as well');
      await below.remove();
      await a.remove();
      await other.removeDir('/d/c');
      await seen.untilNames('b');
      t.deepEqual(seen.last?.directories, []);
      t.is(seen.last?.entries, undefined);
      const revisions = seen.listings.map(({ revision }) => revision);
      t.deepEqual(
        revisions,
        [...revisions].sort((x, y) => x - y),
        'revisions only rise (L1)',
      );
      await other.close();
      await seen.untilNames('');
      t.false(seen.ended, 'a live list does not end because it is empty');
    });

    test(`${via}: with values each child has its value and the revision that made it`, async (t) => {
      const space = await Space.open(t, world());
      const [watcher, other] = [await space.connect(), await space.connect()];
      const created = await space.put('/d/a', 'one');
      const seen = see(t, watcher.list('/d', { watch: true, values: true, via }));
      await seen.untilNames('a');
      t.deepEqual(seen.last?.entries.get('a'), { value: 'one', created });
      await space.put('/d/a', 'two');
      await until(() => seen.last?.entries.get('a')?.value === 'two', 'the new value');
      t.is(seen.last?.entries.get('a')?.created, created);
      await space.put('/d/a', Buffer.from([0xff, 0x00, 0x61]));
      await until(() => seen.last?.entries.get('a')?.value === '\ufffd\0a', 'the bytes that are no text');
      await space.remove('/d/a');
      const again = await space.put('/d/a', 'two');
      await until(() => seen.last?.entries.get('a')?.created === again, 'the new process');
      await other.addKey('/d/b', '');
      await seen.untilNames('a b');
      t.deepEqual(seen.last?.entries.get('b')?.value, '');
    });

    test(`${via}: a path that is not there is an error, or waited for`, async (t) => {
      const space = await Space.open(t, world());
      const client = await space.connect();
      await client.addDir('/empty');
      await space.put('/key', '');
      const absent = see(t, client.list('/d', { watch: true, via }));
      const key = see(t, client.list('/key', { watch: true, via }));
      const empty = see(t, client.list('/empty', { watch: true, via }));
      await absent.untilEnd();
      t.true(absent.error instanceof PathNotFoundError);
      t.regex((absent.error as Error).message, /\/d.*missing: 'wait'/);
      await key.untilEnd();
      t.true(key.error instanceof NotADirectoryError);
      await empty.untilNames('');
      t.is(absent.listings.length, 0);

      const waiting = see(t, client.list('/d', { watch: true, via, missing: 'wait' }));
      await waiting.untilNames('');
      const late = see(t, client.list('/d', { watch: true, via }));
      await late.untilEnd();
      t.true(late.error instanceof PathNotFoundError, 'also where another one waits already');
      await client.addKey('/d/k', '');
      await waiting.untilNames('k');
      await see(t, client.list('/d', { watch: true, via })).untilNames('k');
      t.false(waiting.ended || empty.ended);
    });

    test(`${via}: a list is cold: each subscriber begins with a listing of its own, and the last one's end frees all`, async (t) => {
      const space = await Space.open(t, world());
      const { client, traffic } = await space.connectCounted();
      await client.addKey('/d/a', '');
      const list = client.list('/d', { watch: true, via });
      t.is(traffic.openWatches.size, 0, 'nothing is watched before anybody listens');
      const first = see(t, list);
      await first.untilNames('a');
      const second = see(t, list);
      await second.untilNames('a');
      first.stop();
      await client.addKey('/d/b', '');
      await second.untilNames('a b');
      t.is(first.names, 'a');
      second.stop();
      await until(() => traffic.openWatches.size === 0, 'all watches to end');
      await until(async () => (await space.keys('/_watcherLock')).length === 0, 'the place in line to be given up');
      await see(t, list).untilNames('a b');
    });

    test(`${via}: a hundred lists of one directory in one process are one upstream watch (S1)`, async (t) => {
      const space = await Space.open(t, world());
      const { client, traffic } = await space.connectCounted({ ttl: 60 });
      await client.addKey('/d/a', '');
      const one = see(t, client.list('/d', { watch: true, via }));
      await one.untilNames('a');
      await until(async () => via === 'direct' || (await space.key('/_watcherDir/d//')) !== undefined, 'the marker');
      await client.addKey('/d/b', '');
      await one.untilNames('a b');
      const before = traffic.watchRequests.length;
      const all = Array.from({ length: 100 }, () => see(t, client.list('/d', { watch: true, via })));
      for (const seen of all) await seen.untilNames('a b');
      await client.addKey('/d/c', '');
      for (const seen of all) await seen.untilNames('a b c');
      t.is(traffic.watchRequests.length, before);
      t.is(traffic.watchStreams, 1);
      t.is(traffic.keepAliveStreams, 1);
    });

    test(`${via}: the signal ends a list with a WatchStoppedError and its reason as cause`, async (t) => {
      const space = await Space.open(t, world());
      const client = await space.connect();
      await client.addDir('/d');
      const [stop, reason] = [new AbortController(), new Error('enough')];
      const seen = see(t, client.list('/d', { watch: true, via, signal: stop.signal }));
      const other = see(t, client.list('/d', { watch: true, via }));
      await seen.untilNames('');
      stop.abort(reason);
      t.true(seen.error instanceof WatchStoppedError);
      t.is((seen.error as Error).cause, reason);
      const late = see(t, client.list('/d', { watch: true, via, signal: stop.signal }));
      t.true(late.error instanceof WatchStoppedError);
      await t.throwsAsync(
        async () => {
          for await (const _ of client.list('/d', { watch: true, via, signal: stop.signal })) t.fail();
        },
        { instanceOf: WatchStoppedError, code: 'WATCH_STOPPED' },
      );
      await client.addKey('/d/k', '');
      await other.untilNames('k');
    });

    test(`${via}: close completes lists; after it they are a ClosedError`, async (t) => {
      const space = await Space.open(t, world());
      const client = await space.connect();
      await client.addDir('/d');
      const list = client.list('/d', { watch: true, via });
      const seen = see(t, list);
      const unborn = see(t, client.list('/d', { watch: true, via, values: true }));
      await seen.untilNames('');
      const iterated = (async () => {
        for await (const listing of list) t.deepEqual(listing.children, []);
      })();
      await client.close();
      await iterated;
      t.deepEqual([seen.completed, seen.error, unborn.completed, unborn.error], [true, undefined, true, undefined]);
      const late = see(t, list);
      t.true(late.error instanceof ClosedError);
      t.deepEqual(
        (await space.keys('/_watcherLock')).map(({ key }) => key),
        [],
      );
    });

    test(`${via}: a slow reader of for await gets the newest listing, not each`, async (t) => {
      const space = await Space.open(t, world());
      const client = await space.connect();
      await client.addKey('/d/a0', '');
      const list = client.list('/d', { watch: true, via });
      const brisk = see(t, list);
      const read: string[] = [];
      for await (const listing of list) {
        read.push(listing.children.join(' '));
        if (read.length === 2) break;
        await brisk.untilNames('a0');
        for (let i = 1; i < 6; i++) {
          await client.addKey(`/d/a${i}`, '');
          await until(() => brisk.last?.children.length === i + 1, 'the brisk one');
        }
      }
      t.deepEqual(read, ['a0', 'a0 a1 a2 a3 a4 a5']);
      t.true(brisk.listings.length >= 6);
    });

    test(`${via}: leaving a for await loop frees all that the list held`, async (t) => {
      const space = await Space.open(t, world());
      const { client, traffic } = await space.connectCounted();
      await client.addKey('/d/a', '');
      for await (const { children } of client.list('/d', { watch: true, via })) {
        t.deepEqual(children, ['a']);
        break;
      }
      await t.throwsAsync(
        async () => {
          for await (const _ of client.list('/d', { watch: true, via })) throw new Error('of the loop');
        },
        { message: 'of the loop' },
      );
      await until(() => traffic.openWatches.size === 0, 'all watches to end');
      await until(async () => (await space.keys('/_watcherLock')).length === 0, 'the place in line to be given up');
    });

    test(`${via}: lists of directories whose names begin alike do not mix`, async (t) => {
      const space = await Space.open(t, world());
      const client = await space.connect();
      const a = see(t, client.list('/demo-service', { watch: true, via, missing: 'wait' }));
      const b = see(t, client.list('/demo-service-B', { watch: true, via, missing: 'wait' }));
      await client.addKey('/demo-service/a', '');
      await client.addKey('/demo-service-B/b', '');
      await a.untilNames('a');
      await b.untilNames('b');
      await client.addKey('/demo-service-B/c', '');
      await b.untilNames('b c');
      const d = await client.addKey('/demo-service/d', '');
      await a.untilNames('a d');
      await d.remove();
      await a.untilNames('a');
      t.deepEqual(b.listings.at(-1)?.children, ['b', 'c']);
      t.true(
        [a, b].every(({ listings }) =>
          listings.every((l) => l.children.every((c) => l.path.endsWith('B') === 'bc'.includes(c))),
        ),
      );
    });

    test(`${via}: keys that no path could name come and go unlisted, are counted, and hold up nothing`, async (t) => {
      const space = await Space.open(t, world());
      const counts = new Map<string, number>();
      const stats = {
        bumpSum: (name: string, n: number) => void counts.set(name, (counts.get(name) ?? 0) + n),
        bumpTime: () => ({ end: () => {} }),
      };
      const client = await space.connect({ stats });
      await space.put('/d//x', 'before');
      const seen = see(t, client.list('/d', { watch: true, values: true, via, missing: 'wait' }));
      await seen.untilNames('');
      for (const key of ['/d/', '/d//x', '/d/_x', '/d/a//b', '/d/./x', '/d/\u0007', '/d/\ufffd'])
        await space.put(key, '');
      await space.put('/d/good', 'v');
      await seen.untilNames('good');
      await space.remove('/d//x');
      await space.put('/d/good2', 'v');
      await seen.untilNames('good good2');
      t.true((counts.get('ephemeral.etcd.list.invalidKeys') ?? 0) >= 8);
    });

    test(`${via}: what others register, on leases of their own, is listed like any other`, async (t) => {
      const space = await Space.open(t, world());
      const client = await space.connect();
      const seen = see(t, client.list('/d', { watch: true, via, missing: 'wait' }));
      await seen.untilNames('');
      const lease = await space.grant(60);
      await space.put('/d/theirs', 'v', lease);
      await client.addKey('/d/ours', 'v');
      await seen.untilNames('ours theirs');
      await space.revoke(lease);
      t.is((await seen.untilNames('ours')).status, 'live');
    });
  }

  test('the mirror lies beside the directory: below the directory itself there are registrations and nothing else', async (t) => {
    const space = await Space.open(t, world());
    const client = await space.connect();
    const names = see(t, client.list('/d', { watch: true, missing: 'wait' }));
    const values = see(t, client.list('/d', { watch: true, values: true, missing: 'wait' }));
    await client.addDir('/d/dir');
    await client.addKey('/d/k', 'v');
    await names.untilNames('dir k');
    await values.untilNames('dir k');
    await until(async () => (await space.keys('/_watcherValues/d//k')).length === 1, 'the shadow with values');
    await until(async () => (await space.keys('/_watcherDir/d//')).length === 3, 'the shadow');
    t.deepEqual(
      (await space.keys('/d')).map(({ key }) => key.slice(space.namespace.length)),
      ['/d/k'],
    );
    const shadow = (await space.keys('/_watcherDir/d//')).map(({ key }) => key.slice(space.namespace.length));
    t.deepEqual(shadow, ['/_watcherDir/d//', '/_watcherDir/d//dir/', '/_watcherDir/d//k']);
    t.true(
      (await space.keys('/_watcherDir/')).every(({ lease }) => lease === '0'),
      'the shadow has no lease',
    );
  });

  test('the mirror carries bytes that are no text unaltered', async (t) => {
    const space = await Space.open(t, world());
    const client = await space.connect();
    const bytes = Uint8Array.from({ length: 256 }, (_, i) => i);
    const seen = see(t, client.list('/d', { watch: true, values: true, missing: 'wait' }));
    await seen.untilNames('');
    await space.put('/d/k', bytes);
    await seen.untilNames('k');
    const shadow = await until(() => space.key('/_watcherValues/d//k'), 'the shadow');
    t.deepEqual(Uint8Array.from(shadow.value), bytes);
    t.is(seen.last?.entries.get('k')?.value, Buffer.from(bytes).toString());
  });

  test('changes() gives each subscriber the difference to what it saw before', async (t) => {
    const space = await Space.open(t, world());
    const client = await space.connect();
    const a = await client.addKey('/d/a', '1');
    await client.addKey('/d/b', '1');
    const list = client.list('/d', { watch: true, values: true, via: 'direct' }).pipe(changes());
    const told: ListingChange<Listing>[] = [];
    const subscription = list.subscribe((change) => told.push(change));
    t.teardown(() => subscription.unsubscribe());
    const brief = ({ added, removed, changed }: ListingChange<Listing>) => [
      added.join(),
      removed.join(),
      changed.join(),
    ];
    await until(() => told.length === 1, 'the first difference');
    await a.update('2');
    await until(() => told.length === 2, 'the second');
    await a.remove();
    await until(() => told.length === 3, 'the third');
    await client.addKey('/d/b/below', '');
    await until(() => told.length === 4, 'the fourth');
    t.deepEqual(told.map(brief), [
      ['a,b', '', ''],
      ['', '', 'a'],
      ['', 'a', ''],
      ['', '', 'b'],
    ]);
    const late: ListingChange<Listing>[] = [];
    const lateSubscription = list.subscribe((change) => late.push(change));
    t.teardown(() => lateSubscription.unsubscribe());
    await until(() => late.length === 1, 'the first difference of a late subscriber');
    t.deepEqual(late.map(brief), [['b', '', '']]);
    t.deepEqual(late[0]?.listing.children, ['b']);
  });

  test('a client that is no candidate lists through a mirror that has a master, and writes nothing', async (t) => {
    const space = await Space.open(t, world());
    const master = await space.connect();
    const { client, traffic } = await space.connectCounted({ candidate: false });
    await master.addKey('/d/a', '');
    const mirrored = see(t, master.list('/d', { watch: true }));
    await mirrored.untilNames('a');
    await until(() => space.key('/_watcherDir/d//'), 'the marker');
    const seen = see(t, client.list('/d', { watch: true }));
    await seen.untilNames('a');
    await master.addKey('/d/b', '');
    await seen.untilNames('a b');
    const targets = [...traffic.openWatches.values()].map(({ target }) => target);
    t.true(
      targets.every((target) => 'key' in target),
      'the marker and the lock, not the directory',
    );
    t.is((await space.keys('/_watcherLock/')).length, 1);
    t.is(traffic.keepAliveStreams, 0, 'it needs no session');
    mirrored.stop();
    await master.addKey('/d/c', '');
    await seen.untilNames('a b c');
    t.is((await space.keys('/_watcherLock/')).length, 0, 'it does not take over');
  });

  test('what is done is told to stats and to the logger', async (t) => {
    const space = await Space.open(t, world());
    const [sums, times, said] = [new Map<string, number>(), new Map<string, number>(), [] as string[]];
    const add = (to: Map<string, number>, name: string, n: number) => void to.set(name, (to.get(name) ?? 0) + n);
    const stats = {
      bumpSum: (name: string, n: number) => add(sums, name, n),
      bumpTime: (name: string) => ({ end: () => add(times, name, 1) }),
    };
    const say = (level: string) => (message: string) => void said.push(`${level} ${message}`);
    const logger = { info: say('info'), warn: say('warn'), error: say('error') };
    const client = await space.connect({ stats, logger, heartbeat: 'put' });
    await client.addDir('/d');
    await t.throwsAsync(client.addDir('/d'));
    const seen = see(t, client.list('/d', { watch: true }));
    await client.addKey('/d/k', 'v');
    await seen.untilNames('k');
    await client.list('/d');
    await client.get('/d/k');
    await t.throwsAsync(client.removeDir('/d'));
    const sum = (name: string) => sums.get(`ephemeral.etcd.${name}`) ?? 0;
    await until(() => sum('heartbeat.done') >= 2 && sum('mirror.refreshesCollapsed') >= 1, 'heartbeats');
    t.deepEqual(
      [sum('addDir.done'), sum('addDir.failed'), sum('addKey.done'), sum('list.done'), sum('get.done')],
      [1, 1, 1, 1, 1],
    );
    t.is(sum('removeDir.failed'), 1);
    t.is(sum('mirror.masterships'), 1);
    // Marker and shadow may have gone in one.
    t.true(sum('mirror.transactions') >= 1);
    t.true(sum('list.listings') >= 2);
    t.is(times.get('ephemeral.etcd.addDir.time'), 2);
    t.true([...sums.keys(), ...times.keys()].every((name) => name.startsWith('ephemeral.etcd.')));
    t.true(said.some((line) => line.startsWith('info connected to ')));
    await space.remove('/d/k');
    await until(() => sum('registration.again') === 1, 'the key to be registered again');
    // Only now for certain: the first change may have been there before the master was.
    await until(() => (times.get('ephemeral.etcd.mirror.lag') ?? 0) >= 1, 'the lag of a marker');
    t.true(
      said.some((line) => /^warn .*\/d\/k/.test(line)) && said.some((line) => /^info .*\/d\/k.* again/.test(line)),
    );
  });

  test('stats and a logger that throw harm nobody', async (t) => {
    const space = await Space.open(t, world());
    const fail = () => {
      throw new Error('no');
    };
    const client = await space.connect({
      stats: { bumpSum: fail, bumpTime: fail },
      logger: { info: fail, warn: fail, error: fail },
    });
    await client.addKey('/d/k', 'v');
    await see(t, client.list('/d', { watch: true })).untilNames('k');
    await t.notThrowsAsync(client.close());
  });

  test('state is told: connected at first, closed at last', async (t) => {
    const space = await Space.open(t, world());
    const client = await space.connect();
    const told: string[] = [];
    let completed = false;
    client.state$.subscribe({ next: (state) => told.push(state), complete: () => (completed = true) });
    t.is(client.state, 'connected');
    const [one, two] = [client.close(), client.close()];
    await Promise.all([one, two]);
    t.deepEqual([told, completed], [['connected', 'closed'], true]);
  });
}
