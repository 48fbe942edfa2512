import { FRESH_MS } from './limits.ts';
import type { Change, Member, Observed, Plan, Policy, Step } from './model.ts';

/**
 * Says why a plan is not safe; an empty list lets it pass. It looks at the raw observation and shares no reasoning with the planner, so
 * that an error in one of them, or in a chooser of the user's own, is caught by the other.
 */
export function checkPlan(policy: Policy, observed: Observed, plan: Plan): readonly string[] {
  const faults = checkWanted(plan, observed);
  const [step] = plan.steps;
  if (!step) return faults;
  if (plan.generation < (observed.change?.generation ?? 0)) faults.push('the plan is older than the change in flight');
  if (!observed.linearizable) faults.push('nothing may be changed without a quorum');
  if (observed.alarms.length > 0) faults.push('nothing may be changed under an alarm');
  faults.push(...checkStep(policy, observed, plan, step));
  return faults;
}

function checkWanted({ wanted }: Plan, observed: Observed): string[] {
  const faults: string[] = [];
  const hosts = [...wanted.voters, ...wanted.learners];
  if (new Set(hosts).size !== hosts.length) faults.push('a host is wanted twice');
  if (wanted.learners.length > 1) faults.push('etcd takes one learner at a time');
  const known = new Set([
    ...observed.volunteers.map((volunteer) => volunteer.host),
    ...observed.members.map((member) => member.name),
    ...(observed.change ? [observed.change.host] : []),
  ]);
  const unknown = hosts.filter((host) => !known.has(host));
  if (unknown.length > 0) faults.push(`unknown hosts are wanted: ${unknown.join(', ')}`);
  return faults;
}

function checkStep(policy: Policy, observed: Observed, plan: Plan, step: Step): readonly string[] {
  const change = current(observed);
  switch (step.do) {
    case 'record':
      return change ? ['a change is in flight already'] : checkRecord(policy, observed, plan, step.change);
    case 'addLearner':
      return checkAdd(observed, change, step.peerUrls);
    case 'removeMember':
      return checkRemove(observed, change, step.memberId);
    case 'moveLeader':
      return checkMove(observed, change, step.to);
    case 'markAdded':
      return change?.kind === 'join' && change.phase === 'open' ? [] : ['no join is in flight'];
    case 'withdraw':
      return change?.kind === 'promote' && change.phase === 'open' ? [] : ['no promotion is open'];
    case 'finish':
      return checkFinish(observed, change, step.phase);
    case 'forget':
      return observed.members.some((member) => member.name === step.host) ? [`${step.host} is still a member`] : [];
  }
}

function current({ change }: Observed): Change | undefined {
  return change && change.phase !== 'done' && change.phase !== 'failed' ? change : undefined;
}

function checkRecord(policy: Policy, observed: Observed, plan: Plan, change: Change): readonly string[] {
  if (change.generation !== (observed.change?.generation ?? 0) + 1)
    return ['the generation does not follow the last one'];
  if (change.kind === 'join') return checkAdd(observed, change, change.peerUrls, true);
  if (change.memberId === undefined) return ['the change names no member'];
  if (change.kind === 'promote') return checkPromote(observed, plan, change.memberId);
  const member = find(observed, change.memberId);
  const faults = [...checkRemove(observed, change, change.memberId)];
  if (change.cause === 'dead' && member && isFresh(member, observed)) faults.push(`${member.name} is alive`);
  if (change.cause === 'shrink' && member && !member.isLearner) {
    if (voters(observed).length <= 1) faults.push('the last voter is never removed');
    if (!observed.volunteers.some((one) => one.host === member.name))
      faults.push(`${member.name} has no agent that could stop it`);
  }
  if (change.cause === 'dead' && voters(observed).length - 1 < policy.minVoters) {
    const spare = observed.volunteers.some((one) => !voters(observed).some((voter) => voter.name === one.host));
    const fewer = observed.idealSize < policy.minVoters || observed.leaving.length > 0;
    if (!spare && !fewer && member && !member.isLearner) faults.push('fewer voters than minVoters would be left');
  }
  return faults;
}

function checkAdd(
  observed: Observed,
  change: Change | undefined,
  urls: readonly string[],
  first = false,
): readonly string[] {
  if (change?.kind !== 'join') return ['no join is in flight'];
  const faults = checkQuorum(observed, voters(observed), 0);
  const learners = observed.members.filter((member) => member.isLearner);
  const own = learners.some((member) => first && member.name === '' && member.peerUrls.join() === urls.join());
  if (learners.length > 0 && !own) faults.push('there is a learner already');
  return faults;
}

function checkPromote(observed: Observed, plan: Plan, memberId: string): readonly string[] {
  const member = find(observed, memberId);
  if (!member?.isLearner) return ['only a learner is promoted'];
  const faults = checkQuorum(observed, voters(observed), 1);
  if (member.name === '' || !isFresh(member, observed))
    faults.push('the learner has not answered within the last second');
  const [only, another] = voters(observed);
  if (only && !another && plan.wanted.voters.includes(only.name)) {
    const third = observed.volunteers.some((one) => one.proven && one.host !== member.name && one.host !== only.name);
    if (!third) faults.push('two voters are a passage, and no third is there');
  }
  return faults;
}

function checkRemove(observed: Observed, change: Change | undefined, memberId: string): readonly string[] {
  const member = find(observed, memberId);
  if (!change || !member) return ['no such member, or no change is in flight'];
  if (change.kind === 'promote') return ['a promotion is in flight'];
  if (member.isLearner) return [];
  if (change.kind !== 'remove') return ['a join ends with the removal of its learner, never of a voter'];
  if (change.memberId !== memberId) return ['the change in flight is about another member'];
  const staying = voters(observed).filter((one) => one.id !== memberId);
  return staying.length === 0 ? ['the last voter is never removed'] : checkQuorum(observed, staying, 0);
}

function checkMove(observed: Observed, change: Change | undefined, to: string): readonly string[] {
  const heir = find(observed, to);
  if (change?.kind !== 'remove' || change.memberId === to)
    return ['the leader moves only away from a member that goes'];
  return heir && !heir.isLearner && isFresh(heir, observed) ? [] : ['the new leader is no live voter'];
}

function checkFinish(observed: Observed, change: Change | undefined, phase: 'done' | 'failed'): readonly string[] {
  if (!change) return ['no change is in flight'];
  const member = change.memberId === undefined ? undefined : find(observed, change.memberId);
  if (phase === 'done' && change.kind === 'remove' && member) return ['the member is still there'];
  if (phase === 'done' && change.kind === 'promote' && member?.isLearner) return ['the learner is still one'];
  if (phase === 'failed' && change.kind === 'promote' && change.phase === 'open' && member?.isLearner) {
    return ['an open promotion has to be withdrawn before it is given up'];
  }
  if (phase === 'failed' && change.phase === 'added' && member) return ['the learner of a failed join is still there'];
  return [];
}

/** Half and one of the voters to come must have answered within the last second, under one leader. */
function checkQuorum(observed: Observed, staying: readonly Member[], joining: number): string[] {
  const live = staying.filter((member) => isFresh(member, observed)).length + joining;
  const total = staying.length + joining;
  return live * 2 > total ? [] : [`${live} of ${total} voters would be alive`];
}

function isFresh({ status }: Member, { clusterId, leader }: Observed): boolean {
  return status !== undefined && status.ageMs <= FRESH_MS && status.clusterId === clusterId && status.leader === leader;
}

function voters(observed: Observed): readonly Member[] {
  return observed.members.filter((member) => !member.isLearner);
}

function find(observed: Observed, id: string): Member | undefined {
  return observed.members.find((member) => member.id === id);
}
