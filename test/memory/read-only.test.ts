import test, { type ExecutionContext } from 'ava';
import { PermissionDeniedError } from '../../src/core/errors.ts';
import type { CallOptions, Txn, TxnResult } from '../../src/core/store.ts';
import { CountingStore } from '../support/counting-store.ts';
import { see } from '../support/listings.ts';
import { MemoryScene } from '../support/memory-clients.ts';
import { connectOver } from '../support/space.ts';

/** A store whose user may write or not, as the test says. */
class GuardedStore extends CountingStore {
  mayWrite = false;
  refusals = 0;

  override txn(txn: Txn, options: CallOptions): Promise<TxnResult> {
    const writes = [...txn.success, ...(txn.failure ?? [])].some(({ type }) => type !== 'range');
    if (this.mayWrite || !writes) return super.txn(txn, options);
    this.refusals += 1;
    return Promise.reject(new PermissionDeniedError('this user may only read'));
  }
}

async function setUp(t: ExecutionContext) {
  const scene = new MemoryScene();
  const store = new GuardedStore(scene.server.client());
  const connecting = connectOver(store, scene.clock, { ttl: 10 });
  await scene.settle();
  const client = await connecting;
  t.teardown(() => client.close());
  const { client: other } = await scene.connect();
  t.teardown(() => other.close());
  const adding = other.addKey('/d/a', 'v');
  await scene.settle();
  await adding;
  return { scene, store, client, other };
}

test('a user who may only read is refused a session twice a minute, not once a second, and reads on', async (t) => {
  const { scene, store, client, other } = await setUp(t);
  const seen = see(t, client.list('/d', { watch: true }));
  await scene.advance(2);
  t.is(seen.names, 'a');
  const before = store.refusals;
  t.true(before > 0);
  await scene.advance(60);
  t.true(store.refusals - before <= 2, `${store.refusals - before} refusals`);
  void other.addKey('/d/b', 'v');
  await scene.advance(1);
  t.is(seen.names, 'a b');
});

test('whoever registers is told at once that it is not allowed, and is let in at once when it is', async (t) => {
  const { scene, store, client } = await setUp(t);
  see(t, client.list('/d', { watch: true }));
  await scene.advance(5);
  const refused = t.throwsAsync(client.addKey('/d/x', 'v'), { instanceOf: PermissionDeniedError });
  await scene.settle();
  await refused;
  await scene.advance(5);
  store.mayWrite = true;
  const registering = client.addKey('/d/x', 'v');
  await scene.settle();
  t.is((await registering).state, 'registered');
});

test('a registration that was lost while it was not allowed is back soon after it is', async (t) => {
  const { scene, store, client } = await setUp(t);
  store.mayWrite = true;
  const adding = client.addKey('/d/x', 'v');
  await scene.settle();
  const registration = await adding;
  store.mayWrite = false;
  scene.server.model.revoke(scene.key('/d/x')?.lease ?? '');
  await scene.advance(60);
  t.is(registration.state, 'lost');
  store.mayWrite = true;
  await scene.advance(2);
  t.is(registration.state, 'registered');
});
