import type { Shared } from '../ephemeral/shared.ts';
import type { ClusterAdmin } from '../etcd/cluster-admin.ts';
import type { Source } from './observer.ts';
import { decodeKeys } from './records.ts';

const READ_TIMEOUT_MS = 2_000;
const CALL_TIMEOUT_MS = 1_000;

/**
 * For a host's controller: through its own connection, and never without a quorum. Keys and members are read side by side: the
 * controller alone adds and removes, one step at a time, so that neither can be older than a step of its own.
 */
export function sourceThrough({ connection }: Shared, admin: ClusterAdmin, namespace: string): Source {
  return {
    async read() {
      const read = { type: 'range', target: { prefix: `${namespace}/` } } as const;
      await connection.whenUp();
      const { endpoint } = connection.store;
      const [{ kvs, header }, list] = await Promise.all([
        connection.attempt((store) => store.range(read, { timeoutMs: READ_TIMEOUT_MS })),
        admin.memberList(endpoint, CALL_TIMEOUT_MS),
      ]);
      return { keys: decodeKeys(namespace, kvs), revision: header.revision, list, linearizable: true, endpoint };
    },
  };
}

/**
 * For whoever looks from outside: from the first member with a quorum behind it; where none has one, from the first that answers at
 * all. A learner answers too, but cannot list the members.
 */
export function sourceFromAny(admin: ClusterAdmin, urls: readonly string[], namespace: string): Source {
  return {
    async read() {
      const failures: unknown[] = [];
      for (const linearizable of [true, false]) {
        for (const url of urls) {
          try {
            if (linearizable) await admin.proveQuorum(url, READ_TIMEOUT_MS);
            const list = await admin.memberList(url, READ_TIMEOUT_MS, linearizable);
            const { kvs } = await admin.peek(url, `${namespace}/`, READ_TIMEOUT_MS);
            return { keys: decodeKeys(namespace, kvs), list, linearizable, endpoint: url };
          } catch (error) {
            failures.push(error);
          }
        }
      }
      throw failures.at(-1);
    },
  };
}
