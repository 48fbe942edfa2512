import type { Connection, InEpoch, RetryOptions } from './connection.ts';
import type { Header, KeyValue, RangeOp, Target } from './store.ts';

/** Keys a call: so many fit well below a message's limits and hold up neither the server nor our event loop for long. */
const PAGE_KEYS = 10_000;

export interface SnapshotOptions extends RetryOptions {
  readonly keysOnly: boolean;
  /** Read the past; CompactedError where it is gone. Default: now. */
  readonly revision?: number | undefined;
}

export interface Snapshot {
  /** Of each target its keys, in order. */
  readonly targets: readonly (readonly KeyValue[])[];
  /** All of them were exactly this at this revision. */
  readonly revision: number;
}

/** Targets whose values are wanted even where `keysOnly` is given. */
export type SnapshotTarget = Target & { readonly withValue?: boolean };

/** Reads several targets at one revision, however large: the first pages in one transaction, the others at its revision. */
export async function readSnapshot(
  connection: Connection,
  targets: readonly SnapshotTarget[],
  options: SnapshotOptions,
): Promise<InEpoch<Snapshot>> {
  const ops = targets.map((target): RangeOp => {
    const at = 'key' in target ? { key: target.key } : { prefix: target.prefix };
    const keysOnly = options.keysOnly && !target.withValue;
    return { type: 'range', target: at, keysOnly, limit: PAGE_KEYS, revision: options.revision };
  });
  const first = await connection.txn({ compares: [], success: ops }, options);
  const revision = options.revision ?? first.header.revision;
  const all = await Promise.all(
    ops.map(async (op, index) => {
      const result = first.results[index];
      if (result?.type !== 'range') return [];
      return result.next
        ? [...result.kvs, ...(await readRest(connection, op, result.next, revision, options))]
        : result.kvs;
    }),
  );
  return { targets: all, revision, epoch: first.epoch };
}

async function readRest(
  connection: Connection,
  op: RangeOp,
  from: Uint8Array,
  revision: number,
  options: RetryOptions,
): Promise<KeyValue[]> {
  const kvs: KeyValue[] = [];
  for (let next: Uint8Array | undefined = from; next; ) {
    const page: { kvs: readonly KeyValue[]; next?: Uint8Array | undefined; header: Header } = await connection.range(
      { ...op, from: next, revision },
      options,
    );
    for (const kv of page.kvs) kvs.push(kv);
    next = page.next;
  }
  return kvs;
}
