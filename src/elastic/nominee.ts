import { PROMOTE_CALL_MS } from './limits.ts';
import type { Change } from './model.ts';

/** A host's agent, as the one that runs a certain member. */
export interface Nominee {
  readonly host: string;
  readonly incarnation: string;
  readonly memberId: string;
}

export interface NomineePort {
  nowMs(): number;
  /** How long this host's own lease is sure to live; 0 or less once it may have ended. */
  leaseLeftMs(): number;
  /** The record, by a linearizable read. */
  readChange(): Promise<Change | undefined>;
  /** Fails without being sent once the deadline has passed. */
  promote(memberId: string, deadlineMs: number): Promise<void>;
}

/** Whether the record asks this very agent to make its learner a voter. */
export function isAskedToPromote(change: Change | undefined, nominee: Nominee): boolean {
  return (
    change?.kind === 'promote' &&
    change.phase === 'open' &&
    change.host === nominee.host &&
    change.incarnation === nominee.incarnation &&
    change.memberId === nominee.memberId
  );
}

/**
 * Invariant C2. etcd promotes a learner that died seconds ago, and one voter and a dead one have no quorum. So the nominee asks for its
 * own promotion: the dead ask for nothing. The deadline counts from before the record was read, so that a nominee that was paused
 * anywhere on the way is too late rather than wrong.
 */
export async function promoteSelf(port: NomineePort, nominee: Nominee): Promise<boolean> {
  const readAtMs = port.nowMs();
  const change = await port.readChange();
  if (!isAskedToPromote(change, nominee)) return false;
  const deadlineMs = readAtMs + PROMOTE_CALL_MS;
  if (port.leaseLeftMs() < deadlineMs - port.nowMs()) return false;
  await port.promote(nominee.memberId, deadlineMs);
  return true;
}
