import type { ExecutionContext } from 'ava';
import type { Change } from '../../src/elastic/model.ts';
import { EtcdStore } from '../../src/etcd/etcd-store.ts';
import type { TestElastic } from './elastic.ts';
import { until } from './wait.ts';

const CALL_TIMEOUT_MS = 1_000;

/** The record's whole history: a change begins when the one before it has ended, and not otherwise. */
export async function oneChangeAtATime(t: ExecutionContext, { hosts }: TestElastic): Promise<readonly Change[]> {
  const store = new EtcdStore({ hosts: hosts.map(({ clientUrl }) => clientUrl) });
  t.teardown(() => store.close());
  await until(() => store.connect({ timeoutMs: CALL_TIMEOUT_MS }), 'a member that serves');
  const key = '/_elastic/change';
  const { kvs } = await store.range({ type: 'range', target: { key } }, { timeoutMs: CALL_TIMEOUT_MS });
  const changes: Change[] = [];
  let seen = 0;
  const stream = store.openWatch({
    onCreated: () => {},
    onEvents: (_, events) => {
      for (const { kv } of events) {
        changes.push(JSON.parse(Buffer.from(kv.value).toString()) as Change);
        seen = kv.modRevision;
      }
    },
    onCanceled: (_, error) => t.fail(error.message),
    onEnd: (error) => t.fail(error.message),
  });
  stream.create(1, { target: { key }, startRevision: 1 });
  await until(() => seen >= (kvs[0]?.modRevision ?? 0), 'the history of changes');
  stream.close();
  for (const [index, change] of changes.entries()) {
    const before = changes[index - 1];
    if (!before || before.generation === change.generation) continue;
    t.is(change.generation, before.generation + 1);
    t.true(before.phase === 'done' || before.phase === 'failed', `change ${before.generation} was ${before.phase}`);
  }
  return changes;
}
