import { getEventListeners } from 'node:events';
import test from 'ava';
import { WatchStoppedError } from '../../src/index.ts';
import { see } from '../support/listings.ts';
import { MemoryScene } from '../support/memory-clients.ts';

const MANY = 30;
const many = <T>(make: (i: number) => T) => Array.from({ length: MANY }, (_, i) => make(i));

test.serial(
  'one signal may be given to any number of lists, keys and calls: Node warns of no leak (S2, S3)',
  async (t) => {
    const warnings: Error[] = [];
    const onWarning = (warning: Error) => warnings.push(warning);
    process.on('warning', onWarning);
    t.teardown(() => process.off('warning', onWarning));
    const scene = new MemoryScene();
    const { client } = await scene.connect();
    const stop = new AbortController();
    const { signal } = stop;
    const lists = many((i) => see(t, client.list(`/d${i}`, { watch: true, missing: 'wait', signal })));
    const registrations = await Promise.all(many((i) => client.addKey(`/k${i}`, 'v', { until: signal, signal })));
    scene.server.stop();
    await scene.settle();
    const calls = many(() => client.get('/k0', { signal }).catch((error: unknown) => error));
    const updates = registrations.map((it) => it.update('w', { signal }).catch((error: unknown) => error));
    const removals = many(() => registrations[0]?.remove());
    await scene.settle();
    stop.abort(new Error('enough'));
    await scene.settle();
    for (const told of await Promise.all([...calls, ...updates.slice(1)])) t.is(told, signal.reason);
    for (const seen of lists) t.true(seen.error instanceof WatchStoppedError);
    scene.server.start();
    await scene.advance(5);
    await Promise.all(removals);
    t.true(registrations.every(({ state }) => state === 'removed'));
    t.deepEqual(scene.keys('/k'), []);
    // Node warns in a later turn.
    await new Promise((resolve) => setImmediate(resolve));
    t.deepEqual(warnings, []);
  },
);

test.serial('nothing is left on a signal that outlives what it was given to (S2)', async (t) => {
  const scene = new MemoryScene();
  const { client } = await scene.connect();
  const { signal } = new AbortController();
  const lists = many((i) => see(t, client.list(`/d${i}`, { watch: true, missing: 'wait', signal })));
  const registrations = await Promise.all(many((i) => client.addKey(`/k${i}`, 'v', { until: signal, signal })));
  await scene.settle();
  t.is(getEventListeners(signal, 'abort').length, 1);
  for (const seen of lists) seen.stop();
  await Promise.all(registrations.map((it) => it.remove()));
  await client.list('/', { signal });
  await scene.settle();
  t.is(getEventListeners(signal, 'abort').length, 0);
});
