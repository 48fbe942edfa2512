import type { Lock } from '../core/election.ts';
import { ConnectionError } from '../core/errors.ts';
import type { Compare, Op } from '../core/store.ts';
import type { Shared } from '../ephemeral/shared.ts';
import type { ClusterAdmin } from '../etcd/cluster-admin.ts';
import type { AddedLearner, ControllerPort, ControllerWrite } from './controller.ts';
import { ClusterStateError } from './errors.ts';
import type { Observed } from './model.ts';
import type { Observer, View } from './observer.ts';
import { KEYS, type PublishedPlan } from './records.ts';

/** What a message may take on its way: a controller stops acting so long before its lease may end. */
const MARGIN_MS = 500;
const WRITE_BUDGET_MS = 3_000;

export interface PortOptions {
  readonly namespace: string;
  /** Called before a new change is recorded. */
  readonly beforeChange: (view: View) => Promise<void>;
}

/** The controller's hands: every write compares its election, every membership call has a deadline. */
export class EtcdControllerPort implements ControllerPort {
  readonly #shared: Shared;
  readonly #admin: ClusterAdmin;
  readonly #observer: Observer;
  readonly #lock: Lock;
  readonly #options: PortOptions;
  view: View | undefined;

  constructor(shared: Shared, admin: ClusterAdmin, observer: Observer, lock: Lock, options: PortOptions) {
    this.#shared = shared;
    this.#admin = admin;
    this.#observer = observer;
    this.#lock = lock;
    this.#options = options;
  }

  nowMs(): number {
    return this.#shared.connection.clock.now();
  }

  async observe(): Promise<Observed> {
    this.view = await this.#observer.look();
    return this.view.observed;
  }

  async write({ ifRevision, change, nomination, forget }: ControllerWrite): Promise<number> {
    if (change?.phase === 'open' && this.view && change.generation !== this.view.keys.change?.generation) {
      await this.#options.beforeChange(this.view);
    }
    const ops: Op[] = [];
    if (change) ops.push(put(this.#key(KEYS.change), change));
    if (nomination) ops.push(put(this.#key(KEYS.nominated) + nomination.host, nomination));
    if (forget !== undefined) {
      ops.push({ type: 'delete', target: { key: this.#key(KEYS.nominated) + forget } });
      ops.push({ type: 'delete', target: { key: this.#key(KEYS.leaving) + forget } });
    }
    return this.#txn([this.#recordStands(ifRevision)], ops);
  }

  /** Says what is planned, for status. Not part of any decision. */
  async publish(plan: PublishedPlan): Promise<void> {
    await this.#txn([], [put(this.#key(KEYS.plan), plan)]);
  }

  async confirm(changeRevision: number): Promise<number> {
    const leaseEndMs = this.#shared.session.deadlineMs;
    if (leaseEndMs === undefined) throw new ClusterStateError('the controller’s lease is gone');
    await this.#txn([this.#recordStands(changeRevision)], []);
    return leaseEndMs - MARGIN_MS;
  }

  async addLearner(peerUrls: readonly string[], deadlineMs: number): Promise<AddedLearner> {
    const { id, members } = await this.#admin.addLearner(this.#leaderUrl(), peerUrls, this.#left(deadlineMs));
    return { memberId: id, members };
  }

  async moveLeader(to: string, deadlineMs: number): Promise<void> {
    await this.#admin.moveLeader(this.#leaderUrl(), to, this.#left(deadlineMs));
  }

  async removeMember(memberId: string, deadlineMs: number): Promise<void> {
    await this.#admin.remove(this.#leaderUrl(), memberId, this.#left(deadlineMs));
  }

  #left(deadlineMs: number): number {
    const leftMs = deadlineMs - this.#shared.connection.clock.now();
    if (leftMs <= 0) throw new ConnectionError('too late: the call’s deadline passed before it began');
    return leftMs;
  }

  /** The leader takes every call, and it is up: it has just answered. */
  #leaderUrl(): string {
    const observed = this.view?.observed;
    const url = observed?.members.find((member) => member.id === observed.leader)?.clientUrls[0];
    if (url === undefined) throw new ClusterStateError('the cluster has no leader now');
    return url;
  }

  async #txn(compares: readonly Compare[], success: readonly Op[]): Promise<number> {
    const elected: Compare = {
      target: { key: this.#lock.key },
      field: 'create',
      op: '=',
      operand: this.#lock.createRevision,
    };
    const txn = { compares: [elected, ...compares], success };
    const { connection } = this.#shared;
    const answer = await connection.attempt((store) => store.txn(txn, { timeoutMs: WRITE_BUDGET_MS }));
    if (!answer.succeeded) throw new ClusterStateError('this controller was deposed, or the record has changed');
    return answer.header.revision;
  }

  #recordStands(revision: number): Compare {
    return { target: { key: this.#key(KEYS.change) }, field: 'mod', op: '=', operand: revision };
  }

  #key(part: string): string {
    return this.#options.namespace + part;
  }
}

function put(key: string, value: object): Op {
  return { type: 'put', key, value: JSON.stringify(value) };
}
