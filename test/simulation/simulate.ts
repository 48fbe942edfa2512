import { mirrorKeys } from '../../src/ephemeral/keys.ts';
import { decodeMarker } from '../../src/ephemeral/mirror/marker.ts';
import { Violation } from './oracle.ts';
import { FAULTS_END_MS, type Program } from './program.ts';
import { type Mutation, World } from './world.ts';

export interface SimulationOptions {
  readonly mutation?: Mutation | undefined;
  /** Everything that happens is told here. */
  readonly lines?: string[] | undefined;
}

/** What messages under way and backoffs may add to a bound in which every message takes no time. */
const SLACK_MS = 500;
/** Until every list has found its way back: a master that could not write looks in again within 5 s, and spreads its watchers. */
const LISTS_MS = 9_000;
/** Until the next in line has deposed a master whose marker somebody deleted: it looks after two ttls, and once more after a third. */
const AUDIT_TTLS = 3;
/** Both begin when the link is there again. */
const LINK_MS = 1_500;
/** A closing master hands over within 200 ms, on a network without delay. */
const HANDOVER_MS = 200;
const HANDOVER_DELAYS_MS = 60;

/** The world of the run that is going on: what nobody caught is laid to its charge. */
let running: World | undefined;

function blame(error: unknown): void {
  const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
  running?.oracle.fail('S3', `nobody caught: ${text}`);
}

process.on('unhandledRejection', blame);

/** Runs one program to its end, or to the first promise that was broken. */
export async function simulate(program: Program, options: SimulationOptions = {}): Promise<Violation | undefined> {
  const world = new World(program, options);
  running = world;
  try {
    for (const action of program.actions) {
      await world.runUntil(action.atMs);
      world.do(action);
    }
    await world.runUntil(FAULTS_END_MS);
    await new Finale(world).run();
    return undefined;
  } catch (error) {
    if (error instanceof Violation) return error;
    return new Violation('S3', error instanceof Error ? (error.stack ?? error.message) : String(error), world.nowMs());
  } finally {
    world.destroy();
    // What is still to be said of this world is said before another one begins.
    await new Promise((resolve) => setImmediate(resolve));
    running = undefined;
  }
}

/** Faults are over: everything must come right, stay quiet, and go without a trace. */
class Finale {
  readonly #world: World;

  constructor(world: World) {
    this.#world = world;
  }

  async run(): Promise<void> {
    const world = this.#world;
    const { ttlMs } = world;
    world.heal();
    const startMs = world.nowMs();
    await world.runUntil(startMs + ttlMs + 1_000 + SLACK_MS);
    world.oracle.checkRegistrations();
    await world.runUntil(startMs + Math.max(LISTS_MS, AUDIT_TTLS * ttlMs + LINK_MS));
    this.#checkAll();
    await this.#quiet();
    this.#checkAll();
    if (world.program.exam === 'deaf master') await this.#deafMaster();
    if (world.program.exam === 'closing master') await this.#closingMaster();
    await this.#end();
  }

  #checkAll(): void {
    const { oracle, subscriptions } = this.#world;
    oracle.checkRegistrations();
    for (const subscription of subscriptions.values()) oracle.checkSubscription(subscription);
    if (oracle.violation) throw oracle.violation;
  }

  /** Heartbeats go on, and reach nobody who watches through a mirror. */
  async #quiet(): Promise<void> {
    const world = this.#world;
    const { writes } = world.oracle;
    const before = { marker: writes.marker, shadow: writes.shadow };
    const heard = new Map([...world.subscriptions.values()].map((subscription) => [subscription, subscription.heard]));
    await world.runUntil(world.nowMs() + 2 * world.ttlMs);
    if (writes.marker + writes.shadow > before.marker + before.shadow) {
      world.oracle.fail('L4', 'a mirror was written to while nothing but heartbeats happened');
    }
    for (const [{ id, heard: now }, then] of heard) {
      if (now > then)
        world.oracle.fail('L4', `subscription ${id} was told something while nothing but heartbeats happened`);
    }
  }

  /** Of the mirrors that someone watches, those whose master has a successor in line. */
  #mirrors() {
    const { subscriptions, oracle } = this.#world;
    const watched = [...subscriptions.values()].filter(
      ({ state, via, process }) => state === 'open' && via === 'mirror' && process.state === 'open',
    );
    return watched.flatMap(({ path, values }) => {
      const [master, next] = oracle.inLine(path, values);
      return master && next && master.state === 'open' && path !== '' ? [{ path, values, master, next }] : [];
    });
  }

  /** Its session lives, its watch is stuck: the next in line must find out (M4). */
  async #deafMaster(): Promise<void> {
    const world = this.#world;
    const { oracle, ttlMs } = world;
    const [mirror] = this.#mirrors();
    if (!mirror) return;
    const { master, path, values } = mirror;
    world.trace(() => `the master ${master.name} of ${path} goes deaf`);
    master.store.setDeaf(true);
    world.do({ id: 0, atMs: world.nowMs(), act: { kind: 'put', key: `${path}/exam`, ttl: 0 } });
    await world.runUntil(world.nowMs() + 4 * ttlMs + 1_000 + SLACK_MS);
    for (const subscription of world.subscriptions.values()) {
      if (subscription.process === master || subscription.path !== path || subscription.values !== values) continue;
      if (
        subscription.process.state !== 'open' ||
        subscription.state !== 'open' ||
        subscription.last?.children.includes('exam')
      )
        continue;
      oracle.fail('M4', `the master of ${path} is deaf, and subscription ${subscription.id} was never told`);
    }
    master.store.setDeaf(false);
    await world.runUntil(world.nowMs() + 2_000);
    this.#checkAll();
  }

  async #closingMaster(): Promise<void> {
    const world = this.#world;
    const [mirror] = this.#mirrors();
    if (!mirror) return;
    const { path, values, master } = mirror;
    world.trace(() => `the master ${master.name} of ${path} closes`);
    const key = mirrorKeys(world.namespace, path, values ? 'values' : 'names').marker;
    void world.users.close(master);
    const delaysMs = world.program.delayMs > 0 ? HANDOVER_DELAYS_MS : 0;
    await world.runUntil(world.nowMs() + HANDOVER_MS + delaysMs);
    const stored = world.oracle.keys.get(key);
    const lock = stored && decodeMarker(stored.value, stored.modRevision)?.lock;
    const holder = lock && world.oracle.owners.get(lock.slice(lock.lastIndexOf('/') + 1));
    if (!holder || holder === master)
      world.oracle.fail('M3', `${master.name} closed, and nobody took the mirror of ${path} over`);
    await world.runUntil(world.nowMs() + 2_000);
    this.#checkAll();
  }

  async #end(): Promise<void> {
    const world = this.#world;
    for (const process of world.processes.values()) void world.users.close(process);
    await world.runUntil(world.nowMs() + 2_500);
    for (const { name, state } of world.processes.values()) {
      if (state === 'closing') world.oracle.fail('API', `${name} never closed`);
    }
    // A lease that was granted to a process just when it closed is nobody's, and expires.
    await world.runUntil(world.nowMs() + world.ttlMs + 2_000);
    for (const kv of world.oracle.keys.values()) {
      const owner = world.oracle.owners.get(kv.lease);
      if (owner) world.oracle.fail('R2', `all have closed, and ${kv.key} of ${owner.name} is still there`);
    }
    if (world.oracle.violation) throw world.oracle.violation;
  }
}
