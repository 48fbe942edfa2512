import { backoffAfter } from './limits.ts';
import type { Change, Memory, Observed, SeenChange } from './model.ts';
import { answers, hostOf, inFlight } from './view.ts';

/** What a controller that has just been elected remembers: every clock starts anew, which errs on the patient side. */
export const EMPTY_MEMORY: Memory = {
  silentSinceMs: new Map(),
  answeringSinceMs: new Map(),
  seen: new Set(),
  failures: new Map(),
  change: undefined,
};

/** The memory after one more look. */
export function remember(memory: Memory, observed: Observed): Memory {
  const silentSinceMs = new Map<string, number>();
  const answeringSinceMs = new Map<string, number>();
  for (const member of observed.members) {
    if (answers(member, observed)) {
      answeringSinceMs.set(member.id, memory.answeringSinceMs.get(member.id) ?? observed.nowMs);
    } else if (!hasWorkingAgent(hostOf(member, observed), observed)) {
      silentSinceMs.set(member.id, memory.silentSinceMs.get(member.id) ?? observed.nowMs);
    }
  }
  return {
    silentSinceMs,
    answeringSinceMs,
    seen: new Set([...memory.seen, ...answeringSinceMs.keys()]),
    failures: failuresAfter(memory, observed),
    change: seeChange(memory, observed),
  };
}

/** An agent that is there but whose etcd has failed for good, which it says by no longer being proven, is as good as none. */
function hasWorkingAgent(host: string, observed: Observed): boolean {
  return observed.volunteers.some((volunteer) => volunteer.host === host && volunteer.proven);
}

function seeChange(memory: Memory, observed: Observed): SeenChange | undefined {
  const { change, nowMs } = observed;
  if (!change) return undefined;
  const member = observed.members.find((one) => one.id === change.memberId);
  const progress = [
    change.incarnation,
    member?.name,
    member?.status?.dbSizeBytes,
    member?.status?.raftAppliedIndex,
  ].join(' ');
  const { generation, phase } = change;
  const before = memory.change;
  if (before?.generation !== generation || before.phase !== phase) {
    return { generation, phase, phaseSinceMs: nowMs, progress, progressSinceMs: nowMs };
  }
  return before.progress === progress ? before : { ...before, progress, progressSinceMs: nowMs };
}

/**
 * A join or a promotion that failed although its host was there all along counts, once, when its end is first seen: the host waits
 * longer each time, so that it cannot hold up the others. One that came through has a clean slate.
 */
function failuresAfter(memory: Memory, observed: Observed): Memory['failures'] {
  const { change } = observed;
  const ended = change !== undefined && inFlight(change) === undefined && memory.change?.phase !== change.phase;
  if (!ended || change.kind === 'remove' || memory.change?.generation !== change.generation) return memory.failures;
  const failures = new Map(memory.failures);
  if (change.phase === 'done') failures.delete(change.host);
  else if (isStillThere(change, observed)) failures.set(change.host, nextFailure(change, memory, observed.nowMs));
  return failures;
}

function isStillThere(change: Change, observed: Observed): boolean {
  return observed.volunteers.some((one) => one.host === change.host && one.incarnation === change.incarnation);
}

function nextFailure(change: Change, memory: Memory, nowMs: number) {
  const count = (memory.failures.get(change.host)?.count ?? 0) + 1;
  return { count, untilMs: nowMs + backoffAfter(count) };
}
