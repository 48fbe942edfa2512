import type { EndpointStatus } from '../etcd/cluster-admin.ts';
import { hasConverged } from './convergence.ts';
import { toHex } from './ids.ts';
import type { Blocked, Change, MemberView, Plan, Step, Volunteer, Wanted } from './model.ts';
import type { View } from './observer.ts';
import { inFlight, quorum } from './view.ts';

/** An agent renews its lease every quarter of its ten seconds. */
const SILENT_S = 6;

/** One host. */
export interface StatusRow {
  readonly host: string;
  readonly role: 'voter' | 'learner' | 'client' | 'dead';
  readonly leader: boolean;
  /** Hexadecimal, as etcdctl prints it. */
  readonly memberId?: string | undefined;
  readonly endpoint?: string | undefined;
  readonly version?: string | undefined;
  readonly dbSizeBytes?: number | undefined;
  /** Entries it has yet to apply. */
  readonly raftLag?: number | undefined;
  /** Seconds since its agent last renewed its lease; absent when the agent is gone. */
  readonly leaseAgeS?: number | undefined;
  /** What is the matter with it. */
  readonly problem?: string | undefined;
}

export interface ClusterStatus {
  readonly clusterId: string;
  /** It has a quorum and no alarm, and every member answers that is not just joining. */
  readonly healthy: boolean;
  readonly converged: boolean;
  readonly quorum: boolean;
  readonly alarms: readonly string[];
  readonly idealSize: number;
  readonly wanted: Wanted;
  /** How many more voters may fail before writes stop; below 0: so many must come back. */
  readonly canStand: number;
  readonly controller?: string | undefined;
  readonly change?: Change | undefined;
  readonly steps: readonly Step[];
  readonly blocked: readonly Blocked[];
  readonly rows: readonly StatusRow[];
}

/** Pure: what a look at the cluster, and a plan made from it, say to an operator. */
export function makeStatus(
  { observed, keys, statuses }: View,
  members: readonly MemberView[],
  plan: Plan,
  leaseAges: ReadonlyMap<string, number>,
): ClusterStatus {
  const voters = members.filter((member) => !member.isLearner);
  const live = voters.filter((voter) => voter.answers).length;
  // Its etcd serves a moment before its agent volunteers and a first plan is published.
  const isFounding = keys.plan === undefined && observed.volunteers.length === 0;
  const published = observed.linearizable ? keys.plan : undefined;
  return {
    clusterId: toHex(observed.clusterId),
    healthy:
      observed.linearizable &&
      observed.alarms.length === 0 &&
      members.every((member) => member.answers || isBeginning(member, observed)),
    converged: plan.converged && hasConverged(keys),
    quorum: observed.linearizable,
    alarms: observed.alarms,
    idealSize: observed.idealSize,
    wanted: plan.wanted,
    canStand: live - quorum(voters.length),
    controller: published?.controller,
    change: inFlight(observed.change),
    steps: plan.steps,
    // The controller remembers since when things are as they are; one look does not. Under an alarm it cannot say anything new.
    blocked: merge(plan.blocked, published && !plan.converged && !published.converged ? published.blocked : []),
    rows: [
      ...members.map((member) => memberRow(member, statuses.get(member.id), observed, isFounding, leaseAges)),
      ...observed.volunteers
        .filter(({ host }) => !members.some((member) => member.host === host))
        .map((volunteer) => clientRow(volunteer, leaseAges.get(volunteer.host))),
    ].sort((a, b) => (a.host < b.host ? -1 : 1)),
  };
}

/** Of a member that is none any more nothing is left but its lease: its host has ended, or is about to join anew. */
function clientRow(volunteer: Volunteer, leaseAgeS: number | undefined): StatusRow {
  const { host, clientUrls, problem, proven, etcdVersion, holds } = volunteer;
  const isSilent = leaseAgeS !== undefined && leaseAgeS >= SILENT_S;
  const former = holds === undefined ? undefined : `its member ${toHex(holds)} is none any more`;
  const silent = isSilent ? `its agent has been silent for ${leaseAgeS} s` : undefined;
  const reasons = [proven ? undefined : (problem ?? 'not proven'), former, silent].filter((one) => one !== undefined);
  return {
    host,
    role: isSilent ? 'dead' : 'client',
    leader: false,
    endpoint: clientUrls[0],
    version: etcdVersion,
    leaseAgeS,
    problem: reasons.length > 0 ? reasons.join('; ') : undefined,
  };
}

/** A learner on its way in is no member that fails. */
function isBeginning({ id, started, isLearner }: MemberView, { change }: View['observed']): boolean {
  return isLearner && !started && inFlight(change)?.memberId === id;
}

function merge(own: readonly Blocked[], told: readonly Blocked[]): readonly Blocked[] {
  return [...told, ...own.filter(({ what }) => !told.some((other) => other.what === what))];
}

function memberRow(
  member: MemberView,
  status: EndpointStatus | undefined,
  { members, volunteers }: View['observed'],
  isFounding: boolean,
  leaseAges: ReadonlyMap<string, number>,
): StatusRow {
  const volunteer = volunteers.find(({ host }) => host === member.host);
  return {
    host: member.host || '(unstarted)',
    role: member.answers ? (member.isLearner ? 'learner' : 'voter') : member.started ? 'dead' : 'learner',
    leader: member.leader,
    memberId: toHex(member.id),
    endpoint: members.find(({ id }) => id === member.id)?.clientUrls[0],
    version: status?.version,
    dbSizeBytes: status?.dbSizeBytes,
    raftLag: member.lag,
    leaseAgeS: leaseAges.get(member.host),
    problem: problemOf(member, volunteer?.problem, isFounding),
  };
}

function problemOf(member: MemberView, told: string | undefined, isFounding: boolean): string | undefined {
  if (told !== undefined) return told;
  if (member.leaving) return 'leaving';
  if (!member.started) return 'has not started yet';
  if (!member.answers)
    return member.agent
      ? 'its etcd does not answer; its agent was there a moment ago'
      : 'neither its etcd nor its agent answers';
  if (member.agent) return undefined;
  return isFounding
    ? 'its agent has yet to say that it is there'
    : 'its agent is gone: start ephemeral elastic run there';
}
