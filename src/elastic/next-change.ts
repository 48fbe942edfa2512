import { toHex } from './ids.ts';
import { CONNECTED_MS, SAME_ID_MS } from './limits.ts';
import type { Blocked, Change, ChangeCause, MemberView, Step, Volunteer } from './model.ts';
import { mayBury, type Situation, unready, unsettled } from './situation.ts';
import { sameUrls } from './view.ts';

export interface Outcome {
  readonly steps: readonly Step[];
  readonly blocked: readonly Blocked[];
}

type Rule = (situation: Situation) => Outcome | undefined;

/**
 * With nothing in flight: the first of these that applies. What is broken comes before what is asked for; the dead go before anyone is
 * added (adding first to three with one dead is refused, or costs the quorum); a ready learner votes before a voter leaves.
 */
const RULES: readonly Rule[] = [
  forgetGone,
  strayLearner,
  deadMember,
  readyLearner,
  leaver,
  missingVoter,
  surplus,
  missingLearner,
];

export function nextChange(situation: Situation): Outcome {
  const blocked: Blocked[] = [];
  for (const rule of RULES) {
    const outcome = rule(situation);
    if (!outcome) continue;
    blocked.push(...outcome.blocked);
    if (outcome.steps.length > 0) return { steps: outcome.steps, blocked };
  }
  return { steps: [], blocked };
}

/** Orders to, and intents of, hosts that have neither a member nor an agent any more. */
function forgetGone({ observed, members }: Situation): Outcome | undefined {
  const hosts = [...observed.leaving, ...observed.nominations.map((nomination) => nomination.host)].sort();
  const gone = hosts.find(
    (host) => !members.some((member) => member.host === host) && !isThere(observed.volunteers, host),
  );
  return gone === undefined ? undefined : act({ do: 'forget', host: gone, why: `${gone} is gone for good` });
}

/** A learner that was added and never started, or whose host died, has no vote: it harms no one and is taken up or away at once. */
function strayLearner(situation: Situation): Outcome | undefined {
  const stray = situation.learners.find((learner) => !learner.started || learner.dead);
  if (!stray) return undefined;
  const volunteer = situation.eligible.find((one) => sameUrls(one.peerUrls, stray.peerUrls));
  if (!stray.started && volunteer && isWanted(situation, volunteer.host)) {
    const why = `a learner with the URLs of ${volunteer.host} was added and never started`;
    return record(situation, joinOf(volunteer, 'stray', why));
  }
  return remove(situation, stray, 'stray', `${nameOf(stray)} is a learner whose host is gone`);
}

function deadMember(situation: Situation): Outcome | undefined {
  const dead = situation.voters.filter((voter) => voter.dead);
  const next = dead.find((voter) => mayBury(situation, voter));
  if (next) {
    const lost = next.agent;
    const why = lost ? `${next.host} has lost the data of its member` : `${next.host} is dead`;
    return remove(situation, next, lost ? 'lost-data' : 'dead', why);
  }
  const [kept] = dead;
  if (!kept) return undefined;
  return wait({
    what: `${kept.host} is dead and stays a member`,
    why: 'no host waits to replace it, and without it fewer voters than minVoters would be left',
    todo: `start ${kept.host} again, or start another host`,
  });
}

function readyLearner(situation: Situation): Outcome | undefined {
  const learner = situation.learners.find((one) => situation.wanted.voters.includes(one.host) && one.started);
  if (!learner) return undefined;
  const volunteer = situation.eligible.find((one) => one.host === learner.host);
  const why = unready(situation, learner) ?? tooEarly(situation, learner);
  if (why !== undefined || !volunteer)
    return wait({ what: `${learner.host} does not vote yet`, why: why ?? 'it is not eligible' });
  const amiss = unsettled(situation.voters, 1);
  if (amiss) return wait(amiss);
  const change: Draft = {
    ...joinOf(volunteer, 'grow', wantedCount(situation)),
    kind: 'promote',
    memberId: learner.id,
  };
  return record(situation, change);
}

/**
 * Two voters stand no failure where one stood none either, and two can fail: it is a short passage, entered only when it can be left
 * at once. etcd takes the third only after the second has been connected for 5 s.
 */
function tooEarly({ voters, wanted, members }: Situation, learner: MemberView): string | undefined {
  if (voters.length !== 1) return undefined;
  const leaving = voters.some((voter) => !wanted.voters.includes(voter.host));
  const third = wanted.voters.some((host) => host !== learner.host && !isMember(members, host));
  if (!leaving && !third) return 'it would be the second of two voters';
  if (learner.answeringForMs >= CONNECTED_MS) return undefined;
  return `it has to be connected for ${CONNECTED_MS / 1_000} s before the next change is possible`;
}

function leaver(situation: Situation): Outcome | undefined {
  const { members, voters } = situation;
  const leaving = members.filter((member) => member.leaving);
  const next = leaving.find((member) => member.isLearner) ?? leaving.find((member) => !member.leader) ?? leaving[0];
  if (!next) return undefined;
  if (!next.isLearner && voters.length === 1) {
    const last = members.length === 1 && situation.wanted.voters.length === 0;
    return wait({
      what: `${next.host} stays a member`,
      why: last ? 'the last member is never removed' : 'another host has to vote before it leaves',
      todo: last ? `stop ${next.host}: it keeps its data` : undefined,
    });
  }
  return remove(situation, next, 'leave', `${next.host} was told to leave`);
}

function missingVoter(situation: Situation): Outcome | undefined {
  return joinNext(situation, situation.wanted.voters, wantedCount(situation));
}

function missingLearner(situation: Situation): Outcome | undefined {
  return joinNext(situation, situation.wanted.learners, 'a warm learner is kept as a spare');
}

function joinNext(situation: Situation, hosts: readonly string[], why: string): Outcome | undefined {
  const { eligible, members, learners } = situation;
  const host = hosts.find((one) => !isMember(members, one));
  const volunteer = eligible.find((one) => one.host === host);
  if (!volunteer) return undefined;
  const [other] = learners;
  if (other)
    return wait({
      what: `${volunteer.host} does not join yet`,
      why: `${nameOf(other)} is a learner, and etcd takes one at a time`,
    });
  const amiss = unsettled(situation.voters) ?? sameIdSoon(situation, volunteer);
  return amiss ? wait(amiss) : record(situation, joinOf(volunteer, 'grow', why));
}

function sameIdSoon({ observed, memory }: Situation, volunteer: Volunteer): Blocked | undefined {
  const { change } = observed;
  if (!change || !memory.change || !sameUrls(change.peerUrls, volunteer.peerUrls)) return undefined;
  if (observed.nowMs - memory.change.phaseSinceMs >= SAME_ID_MS) return undefined;
  return {
    what: `${volunteer.host} does not join yet`,
    why: 'a member with its URLs was removed within the last second',
  };
}

/** Voters or learners that are not wanted: the youngest first, the leader last. An agentless one cannot be told and is left alone. */
function surplus(situation: Situation): Outcome | undefined {
  const { wanted, voters, learners, eligible } = situation;
  if (voters.some((voter) => voter.dead) || wanted.voters.length === 0) return undefined;
  if (!wanted.voters.every((host) => voters.some((voter) => voter.host === host))) return spareLearner(situation);
  const since = (member: MemberView) => eligible.find((one) => one.host === member.host)?.since ?? 0;
  const tooMany = [...voters, ...learners]
    .filter((member) => member.agent && !isWanted(situation, member.host, member.isLearner))
    .sort(
      (a, b) => Number(b.isLearner) - Number(a.isLearner) || Number(a.leader) - Number(b.leader) || since(b) - since(a),
    );
  const [next] = tooMany;
  return next && remove(situation, next, 'shrink', `${wantedCount(situation)}, and ${next.host} is not one of them`);
}

/** A learner that is not wanted holds the place of one that is. */
function spareLearner(situation: Situation): Outcome | undefined {
  const next = situation.learners.find((learner) => !isWanted(situation, learner.host));
  return next && remove(situation, next, 'shrink', `${next.host} is not wanted`);
}

function remove(situation: Situation, member: MemberView, cause: ChangeCause, why: string): Outcome {
  const staying = situation.voters.filter((voter) => voter.id !== member.id);
  const amiss = unsettled(staying);
  if (amiss) return wait(amiss);
  const { host, peerUrls, id: memberId } = member;
  return record(situation, { kind: 'remove', cause, host, incarnation: '', peerUrls, memberId, why });
}

type Draft = Omit<Change, 'generation' | 'phase'>;

function joinOf({ host, incarnation, peerUrls }: Volunteer, cause: ChangeCause, why: string): Draft {
  return { kind: 'join', cause, host, incarnation, peerUrls, why };
}

function record({ observed }: Situation, draft: Draft): Outcome {
  const change: Change = { ...draft, generation: (observed.change?.generation ?? 0) + 1, phase: 'open' };
  return act({ do: 'record', change, why: change.why });
}

function act(step: Step): Outcome {
  return { steps: [step], blocked: [] };
}

function wait(blocked: Blocked): Outcome {
  return { steps: [], blocked: [blocked] };
}

function isThere(volunteers: readonly Volunteer[], host: string): boolean {
  return volunteers.some((volunteer) => volunteer.host === host);
}

function isMember(members: readonly MemberView[], host: string): boolean {
  return members.some((member) => member.host === host);
}

/** A voter has to be wanted as one; a learner may also be wanted as a voter to come. */
function isWanted({ wanted }: Situation, host: string, asLearner = true): boolean {
  return wanted.voters.includes(host) || (asLearner && wanted.learners.includes(host));
}

function wantedCount({ wanted }: Situation): string {
  return wanted.voters.length === 1 ? '1 voter is wanted' : `${wanted.voters.length} voters are wanted`;
}

function nameOf(member: MemberView): string {
  return member.host === '' ? `member ${toHex(member.id)}` : member.host;
}
