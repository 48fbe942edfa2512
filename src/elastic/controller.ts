import { afterForgetting, afterRecord, afterRemoval, aged } from './carry.ts';
import { checkPlan } from './check-plan.ts';
import { CALL_LIMIT_MS } from './limits.ts';
import type { Change, Member, Nomination, Observed, Plan, Policy, Step } from './model.ts';
import { plan as makePlan } from './plan.ts';

export interface AddedLearner {
  readonly memberId: string;
  /** All members as the reply to the addition lists them. */
  readonly members: readonly Pick<Member, 'id' | 'name' | 'peerUrls'>[];
}

/** One write of the controller, done only while its election and the record it knows still stand. */
export interface ControllerWrite {
  readonly ifRevision: number;
  readonly change?: Change | undefined;
  readonly nomination?: Nomination | undefined;
  /** A host whose nomination and whose intent to leave are deleted. */
  readonly forget?: string | undefined;
}

export interface ControllerPort {
  /** On the clock of what is observed. */
  nowMs(): number;
  observe(): Promise<Observed>;
  /** Returns the record's new revision. Rejects when this controller was deposed or the record has changed. */
  write(write: ControllerWrite): Promise<number>;
  /**
   * Reads the record and the election again, linearizably; rejects unless both are as they were. Returns until when this controller's
   * lease is sure to live.
   */
  confirm(changeRevision: number): Promise<number>;
  /** These three fail without being sent once their deadline has passed. */
  addLearner(peerUrls: readonly string[], deadlineMs: number): Promise<AddedLearner>;
  moveLeader(to: string, deadlineMs: number): Promise<void>;
  removeMember(memberId: string, deadlineMs: number): Promise<void>;
}

export interface StepResult {
  readonly plan: Plan;
  /** Why its step was not carried out, or was it with an unknown outcome. The next look tells. */
  readonly error?: unknown;
  /** What is known after the step, or when there was none to take; `undefined` where only a look can tell. */
  readonly known?: Observed | undefined;
}

/**
 * One look, or what is still known from the last one, and at most one step. A step that fails is no reason to forget what was seen: a
 * change that etcd refuses again and again would never be found to have lapsed.
 */
export async function controllerStep(
  port: ControllerPort,
  policy: Policy,
  previous: Plan | undefined,
  known?: Observed,
): Promise<StepResult> {
  const observed = (known && aged(known, port.nowMs())) ?? (await port.observe());
  const plan = makePlan(policy, observed, previous);
  const faults = checkPlan(policy, observed, plan);
  if (faults.length > 0) return { plan: refuse(plan, faults) };
  const [step] = plan.steps;
  if (!step) return { plan, known: observed };
  return carryOut(port, observed, step).then(
    (after) => ({ plan, known: after }),
    (error: unknown) => ({ plan, error }),
  );
}

function refuse(plan: Plan, faults: readonly string[]): Plan {
  const what = `refused as unsafe: ${plan.steps[0]?.do ?? 'what is wanted'}`;
  return { ...plan, steps: [], converged: false, blocked: [...plan.blocked, { what, why: faults.join('; ') }] };
}

async function carryOut(port: ControllerPort, observed: Observed, step: Step): Promise<Observed | undefined> {
  const { change, changeRevision: ifRevision } = observed;
  if (step.do === 'record') {
    return afterRecord(observed, step.change, await port.write({ ifRevision, change: step.change }));
  }
  if (step.do === 'forget') {
    await port.write({ ifRevision, forget: step.host });
    return afterForgetting(observed, step.host);
  }
  if (!change) throw new Error(`no change is in flight for the step ${step.do}`);
  return carryOn(port, observed, change, step);
}

type ChangeStep = Exclude<Step, { readonly do: 'record' | 'forget' }>;

async function carryOn(
  port: ControllerPort,
  observed: Observed,
  change: Change,
  step: ChangeStep,
): Promise<Observed | undefined> {
  const ifRevision = observed.changeRevision;
  switch (step.do) {
    case 'addLearner': {
      const added = await port.addLearner(step.peerUrls, await deadline(port, observed));
      await port.write(nominate(ifRevision, change, added));
      return undefined;
    }
    case 'markAdded':
      await port.write(nominate(ifRevision, change, { memberId: step.memberId, members: observed.members }));
      return undefined;
    case 'moveLeader':
      await port.moveLeader(step.to, await deadline(port, observed));
      return undefined;
    case 'removeMember':
      await port.removeMember(step.memberId, await deadline(port, observed));
      return afterRemoval(observed, step.memberId);
    case 'withdraw':
      await port.write({ ifRevision, change: { ...change, phase: 'withdrawn' } });
      return undefined;
    case 'finish': {
      const ended = { ...change, phase: step.phase, outcome: step.why };
      const forget = forgotten(change, step.phase);
      const after = afterRecord(observed, ended, await port.write({ ifRevision, change: ended, forget }));
      return forget === undefined ? after : afterForgetting(after, forget);
    }
  }
}

/**
 * Invariant C5. etcd's strict check does not fence a controller that was paused: two late removals took a healthy three to one. So
 * before each call the record and the lease are read again, and the call may begin only while they, and what the plan was made from,
 * still hold.
 */
async function deadline(port: ControllerPort, observed: Observed): Promise<number> {
  const leaseEndMs = await port.confirm(observed.changeRevision);
  return Math.min((observed.lookedAtMs ?? observed.nowMs) + CALL_LIMIT_MS, leaseEndMs);
}

function nominate(ifRevision: number, change: Change, added: AddedLearner): ControllerWrite {
  const { host, incarnation, peerUrls } = change;
  const { memberId } = added;
  const nomination = { host, incarnation, memberId, peerUrls, initialCluster: initialCluster(added, host) };
  return { ifRevision, change: { ...change, phase: 'added', memberId }, nomination };
}

/** etcd compares it with the members it finds: all of them by name and URL, the new one by the name it is about to take. */
export function initialCluster({ memberId, members }: AddedLearner, host: string): string {
  return members
    .flatMap((member) => member.peerUrls.map((url) => `${member.id === memberId ? host : member.name}=${url}`))
    .join(',');
}

/** Whoever was removed, or never made it, is not nominated any more. */
function forgotten(change: Change, phase: 'done' | 'failed'): string | undefined {
  if (change.kind === 'remove') return phase === 'done' ? change.host : undefined;
  return change.kind === 'join' && phase === 'failed' ? change.host : undefined;
}
