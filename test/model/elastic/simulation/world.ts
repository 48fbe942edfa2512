import { dynamicSize } from '../../../../src/elastic/chooser.ts';
import type { ControllerWrite } from '../../../../src/elastic/controller.ts';
import type { Change, Member, Nomination, Observed, Policy, Volunteer } from '../../../../src/elastic/model.ts';
import { ModelEtcd, type ModelMember, Refused, type Strictness } from './etcd.ts';
import { Oracle } from './oracle.ts';
import { randomFrom, Timeline } from './time.ts';

export const TTL_MS = 10_000;
const RENEWAL_MS = 3_000;

/** A machine: its agent, which may be paused or dead, and the etcd beside it. */
export interface Host {
  readonly name: string;
  readonly peerUrl: string;
  /** Counts the agent's starts; what an earlier one has under way comes to nothing. */
  epoch: number;
  agent: boolean;
  pausedUntilMs: number;
  /** When the agent last renewed its lease. */
  renewedAtMs: number;
  /** When it volunteered; 0 while it does not. */
  since: number;
  /** The member whose data lies in its folder. */
  holds: string | undefined;
  /** Its etcd cannot start. */
  broken: boolean;
  /** It left for good. */
  left: boolean;
}

export class World {
  readonly time = new Timeline();
  readonly random: () => number;
  readonly etcd: ModelEtcd;
  readonly oracle: Oracle;
  readonly policy: Policy;
  readonly hosts: Host[];
  /** Whether agents notice that their etcd cannot start. */
  readonly admitsFaults: boolean;
  readonly leaving = new Set<string>();
  readonly nominations = new Map<string, Nomination>();
  change: Change | undefined;
  changeRevision = 0;
  revision = 1;
  idealSize: number;
  controller: { readonly host: Host; readonly epoch: number } | undefined;
  onWrite: () => void = () => {};

  constructor(seed: number, options: Strictness) {
    this.random = randomFrom(seed);
    this.oracle = new Oracle(this);
    this.etcd = new ModelEtcd(options, (kind, member, before) => this.oracle.onChange(kind, member, before));
    this.policy = { chooser: dynamicSize, minVoters: this.random() < 0.5 ? 1 : 3, deadAfterMs: 8_000 };
    this.idealSize = this.pick([1, 3, 3, 5]);
    this.admitsFaults = this.random() < 0.5;
    const count = 1 + Math.floor(this.random() * 6);
    this.hosts = Array.from({ length: count }, (_, index) => newHost(`h${index + 1}`));
    const [first] = this.hosts;
    if (first) first.holds = this.etcd.bootstrap(first.name, first.peerUrl).id;
    for (const host of this.hosts) host.since = this.revision++;
  }

  get nowMs(): number {
    return this.time.nowMs;
  }

  pick<T>(from: readonly T[]): T {
    return from[Math.floor(this.random() * from.length)] as T;
  }

  memberOf(host: Host): ModelMember | undefined {
    return this.etcd.members.find((member) => member.id === host.holds);
  }

  /** An agent renews as long as it is not paused; the store ends the lease one ttl after the last renewal it got. */
  renewedAtMs(host: Host): number {
    if (host.agent && this.nowMs >= host.pausedUntilMs) host.renewedAtMs = Math.max(host.renewedAtMs, this.#lastBeat());
    return host.renewedAtMs;
  }

  #lastBeat(): number {
    return Math.floor(this.nowMs / RENEWAL_MS) * RENEWAL_MS;
  }

  leaseLives(host: Host): boolean {
    return this.nowMs < this.renewedAtMs(host) + TTL_MS;
  }

  volunteers(): Volunteer[] {
    return this.hosts
      .filter((host) => host.since > 0 && !host.left && !this.leaving.has(host.name) && this.leaseLives(host))
      .map((host) => ({
        host: host.name,
        incarnation: `${host.name}#${host.epoch}`,
        peerUrls: [host.peerUrl],
        clientUrls: [],
        proven: !(host.broken && this.admitsFaults),
        etcdVersion: '3.4.23',
        holds: host.holds,
        since: host.since,
      }));
  }

  observe(): Observed {
    const linearizable = this.etcd.hasQuorum(this.nowMs);
    return {
      nowMs: this.nowMs,
      clusterId: this.etcd.clusterId,
      leader: this.etcd.leader,
      linearizable,
      alarms: [],
      members: this.etcd.list().map((member) => this.#withStatus(member)),
      volunteers: this.volunteers(),
      nominations: [...this.nominations.values()],
      leaving: [...this.leaving],
      listed: this.#listed(),
      idealSize: this.idealSize,
      change: this.change,
      changeRevision: this.changeRevision,
    };
  }

  /** A voter is, until its agent hears that it is to go: one that is dead or paused hears nothing. */
  #listed(): string[] {
    const { change } = this;
    const goes = change?.kind === 'remove' && change.phase === 'open' ? change.memberId : undefined;
    return this.hosts
      .filter((host) => this.memberOf(host)?.isLearner === false)
      .filter((host) => host.holds !== goes || !host.agent || this.nowMs < host.pausedUntilMs)
      .map((host) => host.name);
  }

  /** Its newest answer may be up to 0.9 s old: it need not be up any more. */
  #withStatus(member: Member): Member {
    const model = this.etcd.members.find((one) => one.id === member.id);
    const ageMs = Math.floor(this.random() * 900);
    const wasUp = model !== undefined && (model.up ? true : this.nowMs - ageMs < model.sinceMs && model.name !== '');
    if (!wasUp) return member;
    const { clusterId, leader } = this.etcd;
    const status = {
      ageMs,
      clusterId,
      leader,
      version: '3.4.23',
      dbSizeBytes: 1,
      raftIndex: 100,
      raftAppliedIndex: 100,
    };
    return { ...member, status };
  }

  /** A killed agent's lease outlives it; the next agent of the host has one of its own. */
  isController(host: Host, epoch: number): boolean {
    const isOwnLease = host.epoch === epoch || (!host.agent && host.epoch === epoch + 1);
    return this.controller?.host === host && this.controller.epoch === epoch && isOwnLease && this.leaseLives(host);
  }

  /** The election: free when its holder's lease is gone. */
  campaign(host: Host, epoch: number): boolean {
    const holder = this.controller;
    if (holder && this.isController(holder.host, holder.epoch)) return this.isController(host, epoch);
    if (!this.etcd.hasQuorum(this.nowMs) || !this.leaseLives(host)) return false;
    this.controller = { host, epoch };
    return true;
  }

  write(write: ControllerWrite, host: Host, epoch: number): number {
    if (!this.etcd.hasQuorum(this.nowMs)) throw new Refused('no leader');
    if (!this.isController(host, epoch)) throw new Refused('deposed');
    if (write.ifRevision !== this.changeRevision) throw new Refused('the record has changed');
    return this.writeUnfenced(write);
  }

  writeUnfenced(write: ControllerWrite): number {
    this.revision++;
    if (write.change) {
      this.oracle.onRecord(this.change, write.change);
      this.change = write.change;
      this.changeRevision = this.revision;
    }
    if (write.nomination) this.nominations.set(write.nomination.host, write.nomination);
    if (write.forget !== undefined) {
      this.nominations.delete(write.forget);
      this.leaving.delete(write.forget);
    }
    this.onWrite();
    return this.changeRevision;
  }
}

function newHost(name: string): Host {
  return {
    name,
    peerUrl: `http://${name}:2380`,
    epoch: 1,
    agent: true,
    pausedUntilMs: 0,
    renewedAtMs: 0,
    since: 0,
    holds: undefined,
    broken: false,
    left: false,
  };
}
