import type { Clock } from '../core/clock.ts';
import { debugLog, messageOf } from '../core/log.ts';
import type { ClusterAdmin, EndpointStatus, ListedMember, MemberList } from '../etcd/cluster-admin.ts';
import { SIZE_DEFAULT } from './limits.ts';
import type { Member, Observed } from './model.ts';
import type { ElasticKeys } from './records.ts';
import { reachable } from './urls.ts';

const log = debugLog('observer');

/** A member that answers later than this counts as silent for now; every answer is to be fresh when the slowest one is in. */
const STATUS_TIMEOUT_MS = 600;

const ALARM = /\balarm:(\w+)/;

export interface View {
  readonly observed: Observed;
  readonly keys: ElasticKeys;
  /** By member id. */
  readonly statuses: ReadonlyMap<string, EndpointStatus>;
}

export interface Reading {
  readonly keys: ElasticKeys;
  readonly revision?: number;
  readonly list: MemberList;
  readonly linearizable: boolean;
  /** Who answered. */
  readonly endpoint: string;
}

/** Where an observer gets keys and members from: linearizable reads where there is a quorum, else whatever a member still knows. */
export interface Source {
  read(): Promise<Reading>;
}

/**
 * Looks at everything a plan is made from: keys, members, and each member's status. Members change seldom, so those of the look before
 * are asked at once: a look then takes as long as its slowest answer, not as long as three of them one after the other.
 */
export class Observer {
  readonly #source: Source;
  readonly #admin: ClusterAdmin;
  readonly #clock: Clock;
  readonly #localSize: number;
  readonly #warn: (message: string) => void;
  #lastSize: number | undefined;
  #lastMembers: readonly ListedMember[] = [];
  #warnedOf: string | undefined;

  constructor(
    source: Source,
    admin: ClusterAdmin,
    clock: Clock,
    localSize: number | undefined,
    warn: (message: string) => void,
  ) {
    this.#source = source;
    this.#admin = admin;
    this.#clock = clock;
    this.#localSize = localSize ?? SIZE_DEFAULT;
    this.#warn = warn;
  }

  async look(): Promise<View> {
    const early = new Map(this.#lastMembers.map((member) => [nameOf(member), this.#ask(member)]));
    const { keys, revision, list, linearizable, endpoint } = await this.#source.read();
    const { clusterId } = list;
    const members = list.members.map((member) => ({
      ...member,
      clientUrls: member.clientUrls.map((url) => reachable(url, endpoint)),
    }));
    this.#lastMembers = members;
    const answers = await Promise.all(members.map((member) => early.get(nameOf(member)) ?? this.#ask(member)));
    const statuses = new Map(
      answers.flatMap((answer) => (answer ? [[answer.status.memberId, answer.status] as const] : [])),
    );
    const nowMs = this.#clock.now();
    const observed: Observed = {
      nowMs,
      keysRevision: revision,
      clusterId,
      leader: leaderOf(members, statuses),
      linearizable,
      alarms: linearizable ? alarmsOf(statuses) : [],
      members: members.map((member, index) => withStatus(member, answers[index], nowMs)),
      volunteers: keys.volunteers,
      nominations: keys.nominations,
      leaving: keys.leaving,
      listed: [...keys.endpoints.keys()],
      idealSize: this.#size(keys),
      change: keys.change,
      changeRevision: keys.changeRevision,
    };
    return { observed, keys, statuses };
  }

  async #ask(member: ListedMember): Promise<Answer | undefined> {
    const askedAtMs = this.#clock.now();
    for (const url of member.clientUrls.slice(0, 1)) {
      try {
        const status = await this.#admin.status(url, STATUS_TIMEOUT_MS);
        if (status.memberId === member.id) return { askedAtMs, status };
        log('%s is not member %s but %s', url, member.id, status.memberId);
      } catch (error) {
        log('member %s does not answer: %s', member.name || member.id, messageOf(error));
      }
    }
    return undefined;
  }

  /** A size that is none changes nothing: the last valid one holds. */
  #size({ idealSize, invalidSize }: ElasticKeys): number {
    if (invalidSize !== undefined && invalidSize !== this.#warnedOf) {
      this.#warn(
        `the ideal size is stored as "${invalidSize}", which is no whole number from 1 to 99: the last valid one holds`,
      );
    }
    this.#warnedOf = invalidSize;
    if (idealSize !== undefined) this.#lastSize = idealSize;
    return this.#lastSize ?? this.#localSize;
  }
}

/** One that moved is another to whom a status is asked of. */
function nameOf({ id, clientUrls }: ListedMember): string {
  return `${id} ${clientUrls[0]}`;
}

interface Answer {
  readonly askedAtMs: number;
  readonly status: EndpointStatus;
}

function withStatus(member: ListedMember, answer: Answer | undefined, nowMs: number): Member {
  if (!answer) return member;
  const { clusterId, leader, version, dbSizeBytes, raftIndex, raftAppliedIndex } = answer.status;
  const ageMs = nowMs - answer.askedAtMs;
  return { ...member, status: { ageMs, clusterId, leader, version, dbSizeBytes, raftIndex, raftAppliedIndex } };
}

/** As members tell them with their status: to ask for the alarms themselves costs a round of raft, at every look. */
function alarmsOf(statuses: ReadonlyMap<string, EndpointStatus>): readonly string[] {
  const told = [...statuses.values()].flatMap(({ errors }) => errors.flatMap((error) => ALARM.exec(error)?.[1] ?? []));
  return [...new Set(told)].sort();
}

/** The leader that more than half of the voters name; `'0'` when there is none. */
function leaderOf(members: readonly ListedMember[], statuses: ReadonlyMap<string, EndpointStatus>): string {
  const voters = members.filter((member) => !member.isLearner);
  const named = voters.flatMap((voter) => statuses.get(voter.id)?.leader ?? []);
  return named.find((id) => id !== '0' && named.filter((other) => other === id).length * 2 > voters.length) ?? '0';
}
