import type { Shared } from '../ephemeral/shared.ts';
import type { ClusterAdmin } from '../etcd/cluster-admin.ts';
import type { KeySource } from './observer.ts';
import { decodeKeys } from './records.ts';

const READ_TIMEOUT_MS = 2_000;

/** For a host's controller: through its own connection, and never without a quorum. */
export function keysThrough({ connection }: Shared, namespace: string): KeySource {
  return {
    async read() {
      const read = { type: 'range', target: { prefix: `${namespace}/` } } as const;
      const { kvs } = await connection.attempt((store) => store.range(read, { timeoutMs: READ_TIMEOUT_MS }));
      return { keys: decodeKeys(namespace, kvs), linearizable: true, endpoint: connection.store.endpoint };
    },
  };
}

/**
 * For whoever looks from outside: from the first member with a quorum behind it; where none has one, from the first that answers at
 * all. A learner answers too, but cannot list the members.
 */
export function keysFromAny(admin: ClusterAdmin, urls: readonly string[], namespace: string): KeySource {
  return {
    async read() {
      const failures: unknown[] = [];
      for (const linearizable of [true, false]) {
        for (const url of urls) {
          try {
            if (linearizable) await admin.proveQuorum(url, READ_TIMEOUT_MS);
            else await admin.memberList(url, READ_TIMEOUT_MS, false);
            const { kvs } = await admin.peek(url, `${namespace}/`, READ_TIMEOUT_MS);
            return { keys: decodeKeys(namespace, kvs), linearizable, endpoint: url };
          } catch (error) {
            failures.push(error);
          }
        }
      }
      throw failures.at(-1);
    },
  };
}
