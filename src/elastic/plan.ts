import { continueChange } from './continue-change.ts';
import { EMPTY_MEMORY, remember } from './memory.ts';
import type { Blocked, Observed, Plan, Policy } from './model.ts';
import { nextChange } from './next-change.ts';
import { assess, type Situation } from './situation.ts';
import { inFlight } from './view.ts';

/**
 * What to do now about the cluster's membership, and what keeps it from what is wanted. Pure: time comes in with the observation, and
 * what has to be remembered with the plan before this one. It leaves no choice to whoever carries it out.
 */
export function plan(policy: Policy, observed: Observed, previous: Plan | undefined): Plan {
  const memory = remember(previous?.memory ?? EMPTY_MEMORY, observed);
  const change = inFlight(observed.change);
  const generation = change?.generation ?? (observed.change?.generation ?? 0) + 1;
  const frozen = freeze(observed);
  if (frozen) {
    const wanted = previous?.wanted ?? { voters: [], learners: [] };
    return { generation, wanted, steps: [], blocked: [frozen], converged: false, memory };
  }
  const situation = assess(policy, observed, memory, previous?.wanted);
  const { steps, blocked } = change ? continueChange(situation, change) : nextChange(situation);
  const converged = !change && steps.length === 0 && isThere(situation);
  const reasons = [...blocked, ...silentMembers(situation), ...situation.ineligible].filter(isFirstOfItsKind);
  return { generation, wanted: situation.wanted, steps, blocked: reasons, converged, memory };
}

/** Invariant C7: under an alarm or without a quorum nothing is changed, and nobody is removed. */
function freeze(observed: Observed): Blocked | undefined {
  if (!observed.linearizable) {
    return {
      what: 'everything is frozen',
      why: 'the cluster has no quorum: no linearizable read is answered',
      todo: 'bring members back; if most are lost for good: ephemeral elastic recover',
    };
  }
  if (observed.alarms.length === 0) return undefined;
  const alarms = [...observed.alarms].sort().join(', ');
  const todo = observed.alarms.every((alarm) => alarm === 'NOSPACE')
    ? 'ephemeral elastic heal: compacts, defragments, and disarms the alarm'
    : 'a member holds other data than the rest: find it in its log, wipe its folder, and let it join again';
  return { what: 'everything is frozen', why: `etcd raises ${alarms}`, todo };
}

/** They may be on their way back; until they are, or are given up, somebody should look. */
function silentMembers({ members }: Situation): readonly Blocked[] {
  return members
    .filter((member) => member.started && !member.answers && !member.dead)
    .map(({ host, agent, patienceMs }) => ({
      what: `${host} does not answer`,
      why: agent ? 'its agent is there, or was a moment ago' : givenUp(patienceMs),
      todo: `see whether the host of ${host} is up`,
    }));
}

function givenUp(patienceMs: number): string {
  const gone = 'its agent is gone too';
  return Number.isFinite(patienceMs) ? `${gone}; it is given up after ${patienceMs / 1_000} s` : gone;
}

function isFirstOfItsKind({ what, why }: Blocked, index: number, all: readonly Blocked[]): boolean {
  return all.findIndex((other) => other.what === what && other.why === why) === index;
}

function isThere({ wanted, voters, learners }: Situation): boolean {
  const voting = voters.filter((voter) => voter.answers).map((voter) => voter.host);
  const learning = learners.filter((learner) => learner.answers).map((learner) => learner.host);
  return sameHosts(wanted.voters, voting) && sameHosts(wanted.learners, learning) && voting.length === voters.length;
}

function sameHosts(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((host) => b.includes(host));
}
