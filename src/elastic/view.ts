import { FRESH_MS, OUTAGE_MS } from './limits.ts';
import type { Change, Member, MemberView, Memory, Observed, Policy } from './model.ts';

/** A change that has begun and not ended. */
export function inFlight(change: Change | undefined): Change | undefined {
  return change === undefined || change.phase === 'done' || change.phase === 'failed' ? undefined : change;
}

/** How many of so many voters make a quorum. */
export function quorum(voters: number): number {
  return Math.floor(voters / 2) + 1;
}

export function sameUrls(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && [...a].sort().join() === [...b].sort().join();
}

/** Whether a member answered lately, as part of this cluster and under the leader that the others follow. */
export function answers(member: Member, observed: Observed): boolean {
  const { status } = member;
  return (
    status !== undefined &&
    status.ageMs <= FRESH_MS &&
    status.clusterId === observed.clusterId &&
    status.leader === observed.leader
  );
}

/** A member that has not started has no name: the record or the nomination that made it tells whose it is. */
export function hostOf(member: Member, observed: Observed): string {
  if (member.name !== '') return member.name;
  const nomination = observed.nominations.find((one) => one.memberId === member.id);
  if (nomination) return nomination.host;
  const { change } = observed;
  if (change?.kind === 'join' && sameUrls(change.peerUrls, member.peerUrls)) return change.host;
  return observed.volunteers.find((one) => sameUrls(one.peerUrls, member.peerUrls))?.host ?? '';
}

/** A host that is there and does not hold the data of the member in its name: that member will not come back. */
export function lostItsData(member: Member, observed: Observed): boolean {
  if (member.name === '') return false;
  const volunteer = observed.volunteers.find((one) => one.host === member.name);
  return volunteer !== undefined && volunteer.holds !== member.id && !answers(member, observed);
}

/** All members, in the order of their ids, with what this look and the memory of earlier ones tell. */
export function viewMembers(policy: Policy, observed: Observed, memory: Memory): readonly MemberView[] {
  const leader = observed.members.find((member) => member.id === observed.leader);
  return [...observed.members]
    .sort((a, b) => (a.id < b.id ? -1 : 1))
    .map((member) => {
      const host = hostOf(member, observed);
      const volunteer = observed.volunteers.find((one) => one.host === host);
      const silentMs = elapsed(memory.silentSinceMs.get(member.id), observed.nowMs);
      const patienceMs = patience(policy, observed, memory, member);
      return {
        id: member.id,
        host,
        peerUrls: member.peerUrls,
        isLearner: member.isLearner,
        started: member.name !== '',
        leader: member.id === observed.leader,
        answers: answers(member, observed),
        agent: volunteer !== undefined,
        dead: (silentMs !== undefined && silentMs >= patienceMs) || lostItsData(member, observed),
        patienceMs,
        leaving: observed.leaving.includes(host),
        lag: lagOf(member, leader),
        answeringForMs: elapsed(memory.answeringSinceMs.get(member.id), observed.nowMs) ?? 0,
      };
    });
}

/** Whoever has not been seen since an outage of all is waited for longer: hosts come back one by one, and are what they were. */
function patience({ deadAfterMs }: Policy, observed: Observed, { seen }: Memory, { id }: Member): number {
  const isAfterOutage = !seen.has(id) && observed.volunteers.some((volunteer) => volunteer.afterOutage);
  return isAfterOutage ? Math.max(deadAfterMs, OUTAGE_MS) : deadAfterMs;
}

function elapsed(sinceMs: number | undefined, nowMs: number): number | undefined {
  return sinceMs === undefined ? undefined : nowMs - sinceMs;
}

function lagOf(member: Member, leader: Member | undefined): number | undefined {
  if (!member.status || !leader?.status) return undefined;
  return Math.max(0, leader.status.raftIndex - member.status.raftAppliedIndex);
}
