import test from 'ava';
import type { CallOptions, Store, Txn, TxnResult } from '../../src/core/store.ts';
import { DirectoryNotEmptyError } from '../../src/index.ts';
import { PassingStore } from '../simulation/stores.ts';
import { see } from '../support/listings.ts';
import { MemoryScene } from '../support/memory-clients.ts';
import { connectOver } from '../support/space.ts';

const TTL = 2;

test('added directories are made again when the store was wiped, and a list of one never fails (R4)', async (t) => {
  const scene = new MemoryScene();
  const { client } = await scene.connect({ ttl: TTL });
  const other = await scene.connect({ ttl: TTL });
  await client.addDir('/d');
  await client.withNamespace('/ns').addDir('/deep/e');
  await other.client.addDir('/d', { exclusive: false });
  const seen = see(t, client.list('/', { watch: true }));
  await scene.settle();
  t.is(seen.names, 'd');
  scene.server.wipe();
  await scene.advance(TTL + 1);
  t.deepEqual(
    scene.keys('').flatMap(({ key }) => (key.startsWith('/_dirs') || key.includes('/_dirs/deep') ? [key] : [])),
    ['/_dirs/d', '/ns/_dirs/deep/e'],
  );
  t.deepEqual((await client.list('/d')).children, []);
  await other.client.close();
  scene.server.wipe();
  await scene.advance(TTL + 1);
  t.truthy(scene.key('/_dirs/d'), 'also a second time');
});

test('an older snapshot brings back neither more nor less than the directories that are wanted now (R4)', async (t) => {
  const scene = new MemoryScene();
  const { client } = await scene.connect({ ttl: TTL });
  await client.addDir('/before');
  const snapshot = scene.server.snapshot();
  await client.addDir('/after');
  await scene.advance(1);
  scene.server.restore(snapshot);
  await scene.advance(TTL + 1);
  t.truthy(scene.key('/_dirs/before'));
  t.truthy(scene.key('/_dirs/after'));
});

test('a directory that anybody removed stays removed, also when the store is wiped later', async (t) => {
  const scene = new MemoryScene();
  const { client } = await scene.connect({ ttl: TTL });
  const other = await scene.connect({ ttl: TTL });
  for (const path of ['/own', '/theirs', '/operator', '/compacted', '/kept']) await client.addDir(path);
  await client.removeDir('/own');
  await other.client.removeDir('/theirs');
  scene.remove('/_dirs/operator');
  await scene.advance(1);
  // While the client is away, and so that its watch cannot go on.
  scene.server.stop();
  scene.remove('/_dirs/compacted');
  scene.put('/elsewhere');
  scene.server.compact();
  scene.server.start();
  await scene.advance(2);
  t.deepEqual(
    scene.keys('/_dirs').map(({ key }) => key),
    ['/_dirs/kept'],
  );
  scene.server.wipe();
  await scene.advance(TTL + 1);
  t.deepEqual(
    scene.keys('/_dirs').map(({ key }) => key),
    ['/_dirs/kept'],
  );
});

/** The store is wiped just when a client that lost its watch asks for a key. */
class WipedWhenAsked extends PassingStore {
  readonly #wipe: () => void;
  isArmed = false;

  constructor(inner: Store, wipe: () => void) {
    super(inner);
    this.#wipe = wipe;
  }

  override txn(txn: Txn, options: CallOptions): Promise<TxnResult> {
    const [compare] = txn.compares;
    if (this.isArmed && compare && 'key' in compare.target && compare.target.key === '/_dirs/d') {
      this.isArmed = false;
      this.#wipe();
    }
    return this.inner.txn(txn, options);
  }
}

test('a directory that was lost with the store while its client looked for it is made again (R4)', async (t) => {
  const scene = new MemoryScene();
  const store = new WipedWhenAsked(scene.server.client(), () => scene.server.wipe());
  const client = await connectOver(store, scene.clock, { ttl: TTL });
  await client.addDir('/d');
  scene.server.stop();
  scene.put('/elsewhere');
  scene.put('/elsewhere');
  scene.server.compact();
  store.isArmed = true;
  scene.server.start();
  await scene.advance(TTL + 1);
  t.false(store.isArmed);
  t.truthy(scene.key('/_dirs/d'));
});

test('a directory that is removed while it waits to be made again is not made', async (t) => {
  const scene = new MemoryScene();
  const { client } = await scene.connect({ ttl: TTL });
  await client.addDir('/d');
  await client.addDir('/e');
  scene.server.noSpace = true;
  scene.server.wipe();
  await scene.advance(TTL);
  await t.throwsAsync(client.removeDir('/d'));
  scene.server.noSpace = false;
  await scene.advance(TTL + 1);
  t.deepEqual(
    scene.keys('/_dirs').map(({ key }) => key),
    ['/_dirs/e'],
  );
});

test('a directory whose removal was refused is still made again', async (t) => {
  const scene = new MemoryScene();
  const { client } = await scene.connect({ ttl: TTL });
  await client.addDir('/d');
  await client.addKey('/d/k', 'v');
  await t.throwsAsync(client.removeDir('/d'), { instanceOf: DirectoryNotEmptyError });
  scene.server.wipe();
  await scene.advance(TTL + 1);
  t.deepEqual(
    [...scene.keys('/_dirs/'), ...scene.keys('/d/')].map(({ key }) => key),
    ['/_dirs/d', '/d/k'],
  );
});

test('a closed client makes nothing again (S2)', async (t) => {
  const scene = new MemoryScene();
  const { client, traffic } = await scene.connect({ ttl: TTL });
  await client.addDir('/d');
  await client.close();
  scene.server.wipe();
  await scene.advance(TTL + 1);
  t.deepEqual(scene.dump(), []);
  t.is(traffic.openWatches.size, 0);
});
