import { backoffAfter, FRESH_MS, LAG_ENTRIES, LAG_PART } from './limits.ts';
import type { Blocked, MemberView, Memory, Observed, Policy, Volunteer, Wanted } from './model.ts';
import { joinFault } from './version.ts';
import { quorum, viewMembers } from './view.ts';

/** What both halves of the plan, going on with a change and choosing the next one, reason from. */
export interface Situation {
  readonly policy: Policy;
  readonly observed: Observed;
  readonly memory: Memory;
  readonly members: readonly MemberView[];
  readonly voters: readonly MemberView[];
  readonly learners: readonly MemberView[];
  /** Volunteers that could serve now. */
  readonly eligible: readonly Volunteer[];
  /** Volunteers that could not, and why. */
  readonly ineligible: readonly Blocked[];
  readonly wanted: Wanted;
}

export function assess(policy: Policy, observed: Observed, memory: Memory, previous: Wanted | undefined): Situation {
  const members = viewMembers(policy, observed, memory);
  const voters = members.filter((member) => !member.isLearner);
  const learners = members.filter((member) => member.isLearner);
  const faults = observed.volunteers.map((volunteer) => [volunteer, faultOf(volunteer, observed, memory)] as const);
  const eligible = faults.filter(([, fault]) => fault === undefined).map(([volunteer]) => volunteer);
  const ineligible = faults.flatMap(([volunteer, fault]) =>
    fault && !observed.leaving.includes(volunteer.host) ? fault : [],
  );
  const base = { policy, observed, memory, members, voters, learners, eligible, ineligible };
  const sizes = { idealSize: observed.idealSize, minVoters: policy.minVoters };
  const seen = members.map((member) => (member.dead && !mayBury(base, member) ? { ...member, dead: false } : member));
  return { ...base, wanted: policy.chooser(sizes, eligible, seen, previous) };
}

function faultOf(volunteer: Volunteer, observed: Observed, memory: Memory): Blocked | undefined {
  const what = `${volunteer.host} cannot serve`;
  if (observed.leaving.includes(volunteer.host)) return { what, why: 'it is leaving' };
  if (!volunteer.proven) return { what, why: volunteer.problem ?? 'it has not proven its etcd, ports and folder yet' };
  const failure = memory.failures.get(volunteer.host);
  if (failure && failure.untilMs > observed.nowMs) return { what, why: describeFailure(failure.count) };
  const versions = observed.members.flatMap((member) => member.status?.version ?? []);
  const why = joinFault(volunteer.etcdVersion, versions);
  return why === undefined ? undefined : { what, why, todo: `install a fitting etcd on ${volunteer.host}` };
}

/** The same text for as long as it holds: what is published should not change every second. */
function describeFailure(count: number): string {
  const times = count === 1 ? 'once' : `${count} times`;
  return `joining failed ${times}; it is left alone for ${backoffAfter(count) / 1_000} s`;
}

type Hosts = Pick<Situation, 'policy' | 'observed' | 'voters' | 'eligible'>;

/** Whether a dead voter may be removed: someone waits to replace it, or enough voters are left without it. */
export function mayBury(situation: Hosts, member: MemberView): boolean {
  if (member.isLearner || member.leaving) return true;
  const { voters, eligible, policy, observed } = situation;
  const voting = new Set(voters.filter((voter) => !voter.dead).map((voter) => voter.host));
  if (eligible.some((volunteer) => !voting.has(volunteer.host))) return true;
  const staying = observed.leaving.length === 0 ? policy.minVoters : eligible.length;
  return voters.length - 1 >= Math.min(policy.minVoters, observed.idealSize, Math.max(staying, 1));
}

/**
 * Invariant C4: nothing is changed unless every voter that is to stay, and is not dead, has just answered, and those that answer make
 * a quorum of what comes after. Says what is amiss.
 */
export function unsettled(staying: readonly MemberView[], joining = 0): Blocked | undefined {
  const silent = staying.filter((member) => !member.dead && !member.answers);
  if (silent.length > 0) {
    const names = silent.map((member) => member.host).join(', ');
    return {
      what: 'no change of membership',
      why: `${names} has not answered within ${FRESH_MS / 1_000} s and is not given up yet`,
      todo: `see whether the host of ${names} is up`,
    };
  }
  const live = staying.filter((member) => member.answers).length + joining;
  const needed = quorum(staying.length + joining);
  if (live >= needed) return undefined;
  return { what: 'no change of membership', why: `${live} voters would be left alive where ${needed} are needed` };
}

/** Whether a learner has the leader's log but for a small rest. */
export function hasCaughtUp(member: MemberView, observed: Observed): boolean {
  if (member.lag === undefined) return false;
  const leader = observed.members.find((one) => one.id === observed.leader);
  return member.lag <= Math.max(LAG_ENTRIES, (leader?.status?.raftIndex ?? 0) * LAG_PART);
}

/** Why a learner cannot become a voter now, or `undefined`. */
export function unready(situation: Situation, learner: MemberView): string | undefined {
  if (!learner.started) return `${learner.host} has not started yet`;
  if (!learner.answers) return `${learner.host} does not answer`;
  if (!learner.agent) return `the agent of ${learner.host} is gone`;
  if (!hasCaughtUp(learner, situation.observed)) return `${learner.host} is ${learner.lag ?? '?'} entries behind`;
  return undefined;
}
