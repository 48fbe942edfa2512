import { voterCount } from '../../../../src/elastic/chooser.ts';
import { Actors, ALL_SAFEGUARDS, type Safeguards } from './actors.ts';
import { type Host, TTL_MS, World } from './world.ts';

const CHAOS_MS = 60_000;
const CALM_LIMIT_MS = 30 * 60_000;

export interface Report {
  readonly seed: number;
  readonly violations: readonly string[];
  readonly changes: number;
  readonly faults: number;
  readonly unlucky: boolean;
  /** What each host's last plan says, for whoever has to find out. */
  readonly plans: readonly string[];
}

/** A minute of crashes, pauses, leaves and new sizes; then calm, in which the cluster has to become what is wanted. */
export async function simulate(seed: number, safeguards: Safeguards = ALL_SAFEGUARDS): Promise<Report> {
  const world = new World(seed, { strictReconfigCheck: seed % 2 === 0 });
  const actors = new Actors(world, safeguards);
  const chaos = new Chaos(world, actors);
  for (const host of world.hosts) actors.start(host);
  chaos.start();
  await runUntil(world, () => world.nowMs >= CHAOS_MS);
  chaos.end();
  const isOver = () => isAsWanted(world) || world.oracle.unlucky;
  await runUntil(world, () => isOver() || world.nowMs >= CALM_LIMIT_MS);
  const missing = isOver() ? [] : [`not as wanted in the end: ${describe(world)}`];
  return {
    seed,
    violations: [...world.oracle.violations, ...missing],
    changes: world.oracle.changes,
    faults: chaos.faults,
    unlucky: world.oracle.unlucky,
    plans: [...actors.plans].map(
      ([host, plan]) => `${host}: ${JSON.stringify([plan.wanted, plan.steps, plan.blocked])}`,
    ),
  };
}

async function runUntil(world: World, isOver: () => boolean): Promise<void> {
  while (world.oracle.violations.length === 0 && !isOver() && world.time.next()) {
    // A step of the real code goes through several promises between two calls.
    for (let turn = 0; turn < 12; turn++) await undefined;
  }
}

/** The oracle's own idea of what should be there: it asks no chooser. */
function isAsWanted(world: World): boolean {
  const { etcd, change } = world;
  if (change && change.phase !== 'done' && change.phase !== 'failed') return false;
  const hosts = world.hosts.filter((host) => host.agent && !host.left && !world.leaving.has(host.name));
  const voters = etcd.voters();
  const expected = voterCount(world.idealSize, hosts.length);
  const learners = etcd.members.length - voters.length;
  return (
    etcd.hasQuorum(world.nowMs) &&
    etcd.members.every((member) => member.up) &&
    voters.length === expected &&
    learners === Math.min(1, hosts.length - expected)
  );
}

function describe(world: World): string {
  const members = world.etcd.members.map(
    (one) => `${one.id} ${one.name} ${one.isLearner ? 'learner' : 'voter'} ${one.up}`,
  );
  const hosts = world.hosts.map((one) => `${one.name} agent=${one.agent} holds=${one.holds} left=${one.left}`);
  return `ideal ${world.idealSize}, min ${world.policy.minVoters}; ${[...members, ...hosts].join('; ')}; ${JSON.stringify(world.change)}`;
}

/** Faults, as many as the cluster is meant to stand: it never takes the quorum from it by itself. */
class Chaos {
  faults = 0;
  #over = false;

  constructor(
    readonly world: World,
    readonly actors: Actors,
  ) {}

  start(): void {
    this.#next();
  }

  #next(): void {
    if (this.#over) return;
    const { world } = this;
    world.time.at(world.nowMs + world.random() * 3_000, () => {
      if (this.#over) return;
      this.#fault(world.pick(world.hosts));
      this.#next();
    });
  }

  #fault(host: Host): void {
    this.faults++;
    const { world } = this;
    const kind = world.random();
    if (kind < 0.15) this.#crash(host, world.random() < 0.3);
    else if (kind < 0.2) this.#killAgent(host);
    else if (kind < 0.35) host.pausedUntilMs = world.nowMs + world.random() * 15_000;
    else if (kind < 0.7) this.#restart(world.hosts.find((one) => !one.agent) ?? host);
    else if (kind < 0.76) host.broken = !host.broken;
    else if (kind < 0.88) world.idealSize = world.pick([1, 2, 3, 4, 5]);
    else if (kind < 0.93) this.#leave(host);
    else this.#killAgent(world.controller?.host ?? host);
  }

  #crash(host: Host, wiped: boolean): void {
    const { world } = this;
    const member = world.memberOf(host);
    if (member && !member.isLearner && !this.#canLose(host)) return;
    this.#killAgent(host);
    if (member) world.etcd.setUp(member, false, world.nowMs);
    if (wiped) host.holds = undefined;
  }

  /** Not below quorum, and not a disk's content when that would be below it. */
  #canLose(host: Host): boolean {
    const voters = this.world.etcd.voters();
    const left = voters.filter((voter) => voter.up && voter.id !== host.holds).length;
    return left * 2 > voters.length;
  }

  #killAgent(host: Host): void {
    if (!host.agent) return;
    this.world.renewedAtMs(host);
    host.agent = false;
    host.epoch++;
  }

  /** A new agent waits for the old one's lease to end, then volunteers. */
  #restart(host: Host): void {
    const { world } = this;
    if (host.agent) return;
    const waitMs = Math.max(0, host.renewedAtMs + TTL_MS - world.nowMs);
    const { epoch } = host;
    world.time.at(world.nowMs + waitMs, () => {
      if (host.agent || host.epoch !== epoch) return;
      host.agent = true;
      host.pausedUntilMs = 0;
      host.renewedAtMs = world.nowMs;
      host.since = host.left ? 0 : ++world.revision;
      this.actors.start(host);
    });
  }

  #leave(host: Host): void {
    const staying = this.world.hosts.filter((one) => !one.left && !this.world.leaving.has(one.name));
    if (staying.length > 2 && host.agent && !host.left) this.world.leaving.add(host.name);
  }

  /** Everything heals, but for hosts that stay dead where enough others live. */
  end(): void {
    this.#over = true;
    const { world } = this;
    for (const host of world.hosts) {
      host.broken = false;
      host.pausedUntilMs = Math.min(host.pausedUntilMs, world.nowMs);
    }
    const living = world.hosts.filter((host) => host.agent && !host.left && !world.leaving.has(host.name));
    const enough = living.length >= Math.max(world.idealSize, world.policy.minVoters);
    for (const host of world.hosts) {
      const runs = world.memberOf(host)?.up ?? false;
      if (!host.agent && (runs || !enough || world.random() < 0.5)) this.#restart(host);
    }
  }
}
