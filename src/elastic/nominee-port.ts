import type { ClusterAdmin } from '../etcd/cluster-admin.ts';
import type { Coordination } from './coordination.ts';
import type { NomineePort } from './nominee.ts';
import type { ElasticConfig } from './options.ts';
import { decodeKeys, KEYS } from './records.ts';

/** A lease that may end within this is not acted upon: what a message may take on its way. */
const MARGIN_MS = 500;
const CALL_TIMEOUT_MS = 1_000;

export interface NomineeContext {
  readonly config: ElasticConfig;
  readonly coordination: Coordination;
  readonly admin: ClusterAdmin;
}

/** How long this host's own lease is sure to live; 0 or less once it may have ended. */
export function leaseLeftMs({ shared: { session, connection } }: Coordination): number {
  return (session.deadlineMs ?? 0) - MARGIN_MS - connection.clock.now();
}

/** The nominee's hands. */
export function nomineePort({ config, coordination, admin }: NomineeContext, onPromoted: () => void): NomineePort {
  const { connection } = coordination.shared;
  const { clock } = connection;
  return {
    nowMs: () => clock.now(),
    leaseLeftMs: () => leaseLeftMs(coordination),
    readChange: async () => {
      const read = { type: 'range', target: { key: config.namespace + KEYS.change } } as const;
      const { kvs } = await connection.attempt((store) => store.range(read, { timeoutMs: CALL_TIMEOUT_MS }));
      return decodeKeys(config.namespace, kvs).change;
    },
    promote: async (memberId, deadlineMs) => {
      await admin.promote(connection.store.endpoint, memberId, deadlineMs - clock.now());
      onPromoted();
    },
  };
}
