import { type ControllerPort, controllerStep } from '../../../../src/elastic/controller.ts';
import type { Observed, Plan } from '../../../../src/elastic/model.ts';
import { isAskedToPromote, type Nominee, type NomineePort, promoteSelf } from '../../../../src/elastic/nominee.ts';
import { Refused } from './etcd.ts';
import { type Host, TTL_MS, type World } from './world.ts';

/** A controller stops acting so long before its lease may end: more than a message takes. */
const MARGIN_MS = 500;

/** Safeguards that a test may take away, to see that the simulation misses them. */
export interface Safeguards {
  /** The controller's calls die with its lease and with what they were planned from. */
  readonly deadlines: boolean;
  /** The controller reads the record and its election again before each call, and writes only while they stand. */
  readonly fence: boolean;
  /** Whoever has not answered of late counts as silent. */
  readonly freshness: boolean;
  /** The nominee promotes itself; otherwise the controller does. */
  readonly selfPromotion: boolean;
}

export const ALL_SAFEGUARDS: Safeguards = { deadlines: true, fence: true, freshness: true, selfPromotion: true };

/** The real controller and the real nominee, on the modelled world: every call takes time, and a pause may fall anywhere. */
export class Actors {
  readonly plans = new Map<string, Plan>();

  constructor(
    readonly world: World,
    readonly safeguards: Safeguards,
  ) {
    world.onWrite = () => this.#alert();
  }

  start(host: Host): void {
    this.#tick(host, host.epoch, undefined);
  }

  /** The next thing an agent does; not at all if it was killed, later if it is paused. */
  #resume(host: Host, epoch: number, atMs: number, run: () => void): void {
    this.world.time.at(atMs, () => {
      if (!host.agent || host.epoch !== epoch) return;
      if (this.world.nowMs < host.pausedUntilMs) this.#resume(host, epoch, host.pausedUntilMs, run);
      else run();
    });
  }

  /** A call to etcd: sent at once unless its deadline has passed, then on its way whatever becomes of the sender, then answered. */
  #call<T>(host: Host, epoch: number, run: () => T, deadlineMs = Number.POSITIVE_INFINITY): Promise<T> {
    const { world } = this;
    return new Promise((resolve, reject) => {
      const answer = (settle: () => void) => this.#resume(host, epoch, world.nowMs + this.#latencyMs(), settle);
      this.#resume(host, epoch, world.nowMs + this.#thinkingMs(), () => {
        if (this.safeguards.deadlines && world.nowMs > deadlineMs) return reject(new Refused('deadline exceeded'));
        world.time.at(world.nowMs + this.#latencyMs(), () => {
          try {
            const result = run();
            answer(() => resolve(result));
          } catch (error) {
            answer(() => reject(error));
          }
        });
      });
    });
  }

  #latencyMs(): number {
    return this.world.random() < 0.05 ? 100 : 5;
  }

  /** A pause between any two calls, now and then: longer than a lease, or than a call may take. */
  #thinkingMs(): number {
    return this.world.random() < 0.01 ? this.world.random() * 15_000 : 1;
  }

  #tick(host: Host, epoch: number, previous: Plan | undefined, known?: Observed): void {
    const again = (plan: Plan | undefined, ms: number, after?: Observed) =>
      this.#resume(host, epoch, this.world.nowMs + ms, () => this.#tick(host, epoch, plan, after));
    this.#settle(host);
    if (!this.world.campaign(host, epoch)) {
      again(undefined, 2_000);
      return;
    }
    controllerStep(this.#controllerPort(host, epoch), this.world.policy, previous, known).then(
      ({ plan, error, known: after }) => {
        if (error !== undefined) ignoreRefusal(error);
        this.plans.set(host.name, plan);
        if (!this.safeguards.selfPromotion) this.#promoteFor(host, epoch);
        again(plan, plan.steps.length > 0 && error === undefined ? 20 : 700, after);
      },
      (error: unknown) => {
        ignoreRefusal(error);
        again(previous, 500);
      },
    );
  }

  #controllerPort(host: Host, epoch: number): ControllerPort {
    const { world } = this;
    const call = <T>(run: () => T, deadlineMs?: number) => this.#call(host, epoch, run, deadlineMs);
    return {
      nowMs: () => world.nowMs,
      observe: () => call(() => (this.safeguards.freshness ? world.observe() : withoutAges(world.observe()))),
      write: (write) =>
        call(() => (this.safeguards.fence ? world.write(write, host, epoch) : world.writeUnfenced(write))),
      confirm: async (revision) => {
        const leaseEndMs = world.renewedAtMs(host) + TTL_MS - MARGIN_MS;
        if (this.safeguards.fence) await call(() => this.#expectStanding(host, epoch, revision));
        return leaseEndMs;
      },
      addLearner: (urls, deadlineMs) => call(() => world.etcd.addLearner(urls[0] ?? '', world.nowMs), deadlineMs),
      moveLeader: (to, deadlineMs) => call(() => world.etcd.moveLeader(to, world.nowMs), deadlineMs),
      removeMember: (id, deadlineMs) =>
        call(() => {
          world.etcd.remove(id, world.nowMs);
          this.#alert();
        }, deadlineMs),
    };
  }

  #expectStanding(host: Host, epoch: number, revision: number): void {
    const { world } = this;
    if (!world.etcd.hasQuorum(world.nowMs)) throw new Refused('no leader');
    if (!world.isController(host, epoch) || world.changeRevision !== revision) throw new Refused('deposed');
  }

  /** What invariant C2 forbids. */
  #promoteFor(host: Host, epoch: number): void {
    const { change, etcd } = this.world;
    const id = change?.kind === 'promote' && change.phase === 'open' ? change.memberId : undefined;
    if (id !== undefined) this.#call(host, epoch, () => etcd.promote(id, this.world.nowMs)).catch(ignoreRefusal);
  }

  /** All agents watch the keys: each looks a moment after every write. */
  #alert(): void {
    for (const host of this.world.hosts) {
      this.#resume(host, host.epoch, this.world.nowMs + this.#latencyMs() + this.#thinkingMs(), () =>
        this.#react(host),
      );
    }
  }

  #react(host: Host): void {
    this.#settle(host);
    const nominee = this.#nominee(host);
    if (!nominee || !this.safeguards.selfPromotion || !isAskedToPromote(this.world.change, nominee)) return;
    promoteSelf(this.#nomineePort(host, host.epoch), nominee).catch(ignoreRefusal);
  }

  #nominee(host: Host): Nominee | undefined {
    if (host.holds === undefined) return undefined;
    return { host: host.name, incarnation: `${host.name}#${host.epoch}`, memberId: host.holds };
  }

  #nomineePort(host: Host, epoch: number): NomineePort {
    const { world } = this;
    return {
      nowMs: () => world.nowMs,
      leaseLeftMs: () => world.renewedAtMs(host) + TTL_MS - MARGIN_MS - world.nowMs,
      readChange: () => this.#call(host, epoch, () => this.#linearizable(() => world.change)),
      promote: (id, deadlineMs) => this.#call(host, epoch, () => world.etcd.promote(id, world.nowMs), deadlineMs),
    };
  }

  #linearizable<T>(read: () => T): T {
    if (!this.world.etcd.hasQuorum(this.world.nowMs)) throw new Refused('no leader');
    return read();
  }

  /** The agent as the one that starts and stops the etcd beside it, which the simulation keeps simple. */
  #settle(host: Host): void {
    const { world } = this;
    if (!world.etcd.hasQuorum(world.nowMs)) {
      this.#restartEtcd(host);
      return;
    }
    const order = world.nominations.get(host.name);
    if (order?.incarnation === `${host.name}#${host.epoch}` && order.memberId !== host.holds) {
      if (world.etcd.members.some((member) => member.id === order.memberId)) host.holds = order.memberId;
    }
    const member = world.memberOf(host);
    if (host.holds !== undefined && !member) this.#wasRemoved(host);
    if (member && !host.broken) member.name = host.name;
    this.#restartEtcd(host);
  }

  #restartEtcd(host: Host): void {
    const member = this.world.memberOf(host);
    if (member && member.name !== '' && !host.broken) this.world.etcd.setUp(member, true, this.world.nowMs);
  }

  #wasRemoved(host: Host): void {
    host.holds = undefined;
    if (this.world.leaving.has(host.name) || host.since === 0) host.left = true;
  }
}

function withoutAges(observed: Observed): Observed {
  const { clusterId, leader } = observed;
  const status = {
    ageMs: 0,
    clusterId,
    leader,
    version: '3.4.23',
    dbSizeBytes: 1,
    raftIndex: 100,
    raftAppliedIndex: 100,
  };
  return {
    ...observed,
    members: observed.members.map((member) => (member.name === '' ? member : { ...member, status })),
  };
}

function ignoreRefusal(error: unknown): void {
  if (!(error instanceof Refused)) throw error;
}
