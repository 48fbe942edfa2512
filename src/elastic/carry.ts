/**
 * What the controller's own step has changed, taken into the look that the step was made from. Its writes touch nothing but its own
 * records, so that the rest of the look holds as long as it is fresh. Where a step sets something in motion at a member, only another
 * look can tell. Pure.
 */
import { CARRY_MS } from './limits.ts';
import type { Change, Observed } from './model.ts';
import type { ElasticKeys } from './records.ts';

/** As it would look now, its answers older by what has passed; `undefined` once that is too much. */
export function aged(known: Observed, nowMs: number): Observed | undefined {
  const sinceMs = nowMs - (known.lookedAtMs ?? known.nowMs);
  if (sinceMs < 0 || sinceMs > CARRY_MS) return undefined;
  const moreMs = nowMs - known.nowMs;
  const members = known.members.map((member) =>
    member.status ? { ...member, status: { ...member.status, ageMs: member.status.ageMs + moreMs } } : member,
  );
  return { ...known, members, nowMs, lookedAtMs: known.lookedAtMs ?? known.nowMs };
}

export function afterRecord(observed: Observed, change: Change, changeRevision: number): Observed {
  return { ...observed, change, changeRevision };
}

export function afterForgetting(observed: Observed, host: string): Observed {
  return {
    ...observed,
    nominations: observed.nominations.filter((nomination) => nomination.host !== host),
    leaving: observed.leaving.filter((one) => one !== host),
  };
}

/**
 * With what was heard of the keys since, such as that a host has taken itself off the clients' list. `undefined` where the look knows
 * more, or where somebody else has written the record.
 */
export function afterNews(known: Observed, keys: ElasticKeys, revision: number): Observed | undefined {
  if (known.keysRevision === undefined || revision < known.keysRevision) return undefined;
  if (keys.changeRevision > known.changeRevision) return undefined;
  return {
    ...known,
    keysRevision: revision,
    volunteers: keys.volunteers,
    nominations: keys.nominations,
    leaving: keys.leaving,
    listed: [...keys.endpoints.keys()],
    idealSize: keys.idealSize ?? known.idealSize,
  };
}

/** etcd answers a removal once it is committed. */
export function afterRemoval(observed: Observed, memberId: string): Observed {
  return { ...observed, members: observed.members.filter(({ id }) => id !== memberId) };
}
