import { NO_PROGRESS_MS, OPEN_LIMIT_MS, UNLIST_MS, WITHDRAWN_MS } from './limits.ts';
import type { Change, MemberView, Step } from './model.ts';
import type { Outcome } from './next-change.ts';
import { type Situation, unready, unsettled } from './situation.ts';
import { sameUrls } from './view.ts';

/**
 * With a change in flight, whoever began it, nothing else is done until it has ended:
 *
 *   join     open ──learner added──▶ added ──it answers──▶ done          (given up: the learner is removed, then failed)
 *   promote  open ──the nominee promotes itself──▶ done                  (given up: withdrawn, then failed once no call can be left)
 *   remove   open ──leader moved away──▶ open ──removed──▶ done          (given up before the removal: failed)
 */
export function continueChange(situation: Situation, change: Change): Outcome {
  if (change.kind === 'join')
    return change.phase === 'added' ? awaitLearner(situation, change) : beginJoin(situation, change);
  if (change.kind === 'promote') return continuePromotion(situation, change);
  return continueRemoval(situation, change);
}

function beginJoin(situation: Situation, change: Change): Outcome {
  const { members } = situation;
  const added = members.find((member) => sameUrls(member.peerUrls, change.peerUrls));
  if (added && !isUnderWay(added)) return failed(change, `the URLs of ${change.host} belong to a member that runs`);
  const volunteer = volunteerOf(situation, change);
  if (!volunteer) {
    const why = `${change.host} is gone or was started anew`;
    return added ? act({ do: 'removeMember', host: change.host, memberId: added.id, why }) : failed(change, why);
  }
  if (added) {
    return act({
      do: 'markAdded',
      host: change.host,
      memberId: added.id,
      why: `etcd knows ${change.host} as a learner already`,
    });
  }
  if (openForMs(situation) >= OPEN_LIMIT_MS) return failed(change, 'it could not begin in time');
  const amiss = unsettled(situation.voters);
  if (amiss) return { steps: [], blocked: [amiss] };
  return act({ do: 'addLearner', host: change.host, peerUrls: change.peerUrls, why: change.why });
}

/** One that never started, and so is the trace of a join that was cut short. */
function isUnderWay(member: MemberView): boolean {
  return member.isLearner && !member.started;
}

function awaitLearner(situation: Situation, change: Change): Outcome {
  const learner = memberOf(situation, change);
  if (!learner) return failed(change, `its learner is no member any more`);
  if (learner.started && learner.answers) return done(change, `${change.host} runs as a learner`);
  const volunteer = volunteerOf(situation, change);
  const why = volunteer ? stuck(situation, volunteer.proven) : `${change.host} is gone or was started anew`;
  if (why !== undefined) return act({ do: 'removeMember', host: change.host, memberId: learner.id, why });
  return waitFor(`${change.host} joins`, `${change.host} was added as a learner and is starting`);
}

function stuck({ memory, observed }: Situation, proven: boolean): string | undefined {
  if (!proven) return 'its etcd does not start';
  const idleMs = observed.nowMs - (memory.change?.progressSinceMs ?? observed.nowMs);
  return idleMs >= NO_PROGRESS_MS ? `it has received and applied nothing for ${NO_PROGRESS_MS / 1_000} s` : undefined;
}

function continuePromotion(situation: Situation, change: Change): Outcome {
  const learner = memberOf(situation, change);
  if (!learner) return failed(change, `${change.host} is no member any more`);
  if (!learner.isLearner) return done(change, `${change.host} votes`);
  if (change.phase === 'withdrawn') {
    if (openForMs(situation) >= WITHDRAWN_MS) return failed(change, 'nothing of it can be under way any more');
    return waitFor(`${change.host} stays a learner`, 'a promotion that had begun may still end');
  }
  const why = unfit(situation, change, learner);
  if (why !== undefined) return act({ do: 'withdraw', host: change.host, why });
  return waitFor(`${change.host} promotes itself`, 'a dead host cannot, and must not vote');
}

function unfit(situation: Situation, change: Change, learner: MemberView): string | undefined {
  if (!volunteerOf(situation, change)) return `${change.host} is gone, leaving, or was started anew`;
  if (openForMs(situation) >= OPEN_LIMIT_MS) return `${change.host} has not promoted itself in time`;
  return unready(situation, learner) ?? unsettled(situation.voters, 1)?.why;
}

function continueRemoval(situation: Situation, change: Change): Outcome {
  const { voters } = situation;
  const member = memberOf(situation, change);
  if (!member) return done(change, `${change.host} is no member any more`);
  if (isUncalledFor(change, member)) return failed(change, `${change.host} has come back`);
  if (openForMs(situation) >= OPEN_LIMIT_MS) return failed(change, 'it could not be made in time');
  const staying = voters.filter((voter) => voter.id !== member.id);
  if (staying.length === 0) return failed(change, 'the last voter is never removed');
  const amiss = unsettled(staying);
  if (amiss) return { steps: [], blocked: [amiss] };
  const removal: Step = { do: 'removeMember', host: change.host, memberId: member.id, why: change.why };
  if (member.leader) {
    const heir = mostAdvanced(staying);
    if (!heir) return waitFor(`${change.host} stays a member`, 'no other voter could lead');
    const why = `${change.host} leads, and is to go`;
    return { steps: [{ do: 'moveLeader', to: heir.id, why }, removal], blocked: [] };
  }
  if (isListed(situation, member)) return waitFor(`${change.host} stays a member`, 'its clients are told to leave it');
  return act(removal);
}

/** Clients leave a member that is listed no more: they go on elsewhere before it stops. Only its agent can take it off the list. */
function isListed(situation: Situation, { host, agent }: MemberView): boolean {
  return agent && situation.observed.listed.includes(host) && openForMs(situation) < UNLIST_MS;
}

/** Someone taken for dead who answers, or is about to, is no longer removed for that; nor is one that is no longer told to leave. */
function isUncalledFor(change: Change, member: MemberView): boolean {
  if (change.cause === 'dead' || change.cause === 'lost-data') return !member.dead;
  return change.cause === 'leave' && !member.leaving;
}

function mostAdvanced(voters: readonly MemberView[]): MemberView | undefined {
  const lag = (voter: MemberView) => voter.lag ?? Number.POSITIVE_INFINITY;
  return voters.filter((voter) => voter.answers).sort((a, b) => lag(a) - lag(b))[0];
}

function memberOf({ members }: Situation, change: Change): MemberView | undefined {
  return members.find((member) => member.id === change.memberId);
}

/** The very agent the change was recorded for, as long as it does not want to leave. */
function volunteerOf({ observed }: Situation, { host, incarnation }: Change) {
  if (observed.leaving.includes(host)) return undefined;
  return observed.volunteers.find((one) => one.host === host && one.incarnation === incarnation);
}

function openForMs({ memory, observed }: Situation): number {
  return observed.nowMs - (memory.change?.phaseSinceMs ?? observed.nowMs);
}

function done(change: Change, why: string): Outcome {
  return act({ do: 'finish', phase: 'done', host: change.host, why });
}

function failed(change: Change, why: string): Outcome {
  return act({ do: 'finish', phase: 'failed', host: change.host, why });
}

function act(step: Step): Outcome {
  return { steps: [step], blocked: [] };
}

function waitFor(what: string, why: string): Outcome {
  return { steps: [], blocked: [{ what, why }] };
}
