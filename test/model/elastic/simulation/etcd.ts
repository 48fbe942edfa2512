import type { AddedLearner } from '../../../../src/elastic/controller.ts';
import type { Member } from '../../../../src/elastic/model.ts';

export interface ModelMember {
  readonly id: string;
  readonly peerUrl: string;
  name: string;
  isLearner: boolean;
  up: boolean;
  /** When it last went up or down. */
  sinceMs: number;
}

export class Refused extends Error {}

/** What etcd would refuse by itself, and is not the plan's doing. */
export interface Strictness {
  readonly strictReconfigCheck: boolean;
}

/** An etcd cluster as far as membership goes: who votes, who is up, and what it refuses. */
export class ModelEtcd {
  readonly clusterId = 'c1';
  members: ModelMember[] = [];
  leader = '0';
  leaderSinceMs = 0;
  #leaderlessUntilMs = 0;
  #nextId = 1;

  constructor(
    readonly strictness: Strictness,
    readonly onChange: (
      kind: 'add' | 'promote' | 'remove',
      member: ModelMember,
      before: readonly ModelMember[],
    ) => void,
  ) {}

  bootstrap(name: string, peerUrl: string): ModelMember {
    const member = { id: `m${this.#nextId++}`, peerUrl, name, isLearner: false, up: true, sinceMs: -60_000 };
    this.members = [member];
    this.leader = member.id;
    return member;
  }

  voters(): ModelMember[] {
    return this.members.filter((member) => !member.isLearner);
  }

  hasQuorum(nowMs: number): boolean {
    const voters = this.voters();
    if (nowMs < this.#leaderlessUntilMs || voters.filter((voter) => voter.up).length * 2 <= voters.length) return false;
    if (!this.#isLed()) this.#lead(voters.find((voter) => voter.up)?.id ?? '0', nowMs);
    return true;
  }

  #lead(id: string, nowMs: number): void {
    this.leader = id;
    this.leaderSinceMs = nowMs;
  }

  #isLed(): boolean {
    return this.voters().some((voter) => voter.id === this.leader && voter.up);
  }

  setUp(member: ModelMember, up: boolean, nowMs: number): void {
    if (member.up === up) return;
    member.up = up;
    member.sinceMs = nowMs;
    if (!up && member.id === this.leader) this.#leaderlessUntilMs = nowMs + 1_200;
  }

  addLearner(peerUrl: string, nowMs: number): AddedLearner {
    this.#needQuorum(nowMs);
    if (this.members.some((member) => member.peerUrl === peerUrl)) throw new Refused('Peer URLs already exists');
    if (this.members.some((member) => member.isLearner)) throw new Refused('too many learner members');
    if (this.strictness.strictReconfigCheck && !this.#allConnected(nowMs)) throw new Refused('unhealthy cluster');
    const member = { id: `m${this.#nextId++}`, peerUrl, name: '', isLearner: true, up: false, sinceMs: nowMs };
    this.#commit('add', member, [...this.members, member]);
    return { memberId: member.id, members: this.list() };
  }

  /** As etcd does, it promotes a learner that has caught up once, whether or not it still lives. */
  promote(id: string, nowMs: number): void {
    this.#needQuorum(nowMs);
    const member = this.#find(id);
    if (!member.isLearner) throw new Refused('can only promote a learner member');
    if (member.name === '') throw new Refused('can only promote a learner member which is in sync with leader');
    const before = this.members.map((one) => ({ ...one }));
    member.isLearner = false;
    this.onChange('promote', member, before);
  }

  remove(id: string, nowMs: number): void {
    this.#needQuorum(nowMs);
    const member = this.#find(id);
    if (this.strictness.strictReconfigCheck && !member.isLearner) this.#checkRemoval(member, nowMs);
    this.#commit(
      'remove',
      member,
      this.members.filter((one) => one !== member),
    );
    if (member.id === this.leader) this.#leaderlessUntilMs = nowMs + 1_200;
    member.up = false;
  }

  moveLeader(to: string, nowMs: number): void {
    this.#needQuorum(nowMs);
    if (!this.voters().some((voter) => voter.id === to && voter.up)) throw new Refused('bad leader transferee');
    this.#lead(to, nowMs);
  }

  list(): Member[] {
    return this.members.map(({ id, name, peerUrl, isLearner }) => ({
      id,
      name,
      isLearner,
      peerUrls: [peerUrl],
      clientUrls: [],
    }));
  }

  #checkRemoval(member: ModelMember, nowMs: number): void {
    const voters = this.voters();
    if (!member.up) return;
    const active = voters.filter((voter) => this.#connected(voter, nowMs)).length;
    if (active - 1 < 1 + Math.floor((voters.length - 1) / 2)) throw new Refused('unhealthy cluster');
  }

  #allConnected(nowMs: number): boolean {
    return this.voters().every((voter) => this.#connected(voter, nowMs));
  }

  #connected(voter: ModelMember, nowMs: number): boolean {
    return voter.up && (voter.id === this.leader || nowMs - voter.sinceMs >= 5_000);
  }

  #commit(kind: 'add' | 'remove', member: ModelMember, after: ModelMember[]): void {
    const before = this.members;
    this.members = after;
    this.onChange(kind, member, before);
  }

  #find(id: string): ModelMember {
    const member = this.members.find((one) => one.id === id);
    if (!member) throw new Refused('member not found');
    return member;
  }

  #needQuorum(nowMs: number): void {
    if (!this.hasQuorum(nowMs)) throw new Refused('no leader');
  }
}
