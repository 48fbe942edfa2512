/** The soak itself: a cluster, a fleet of clients, rounds of faults, and after each round the proof that all is right again. */
import { readFileSync } from 'node:fs';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { Chance } from '../simulation/chance.ts';
import { type EtcdCluster, startCluster } from '../support/etcd-process.ts';
import { etcdctl } from '../support/etcdctl.ts';
import { drawFaults, type Fault, type FaultWorld } from './faults.ts';
import { FleetProcess } from './fleet.ts';
import { asTold, History } from './history.ts';
import { Judge, SLACK_MS, type Wrong } from './judge.ts';
import { directoriesOf, type FleetSize, planFleet } from './plan.ts';
import { Pulse } from './pulse.ts';
import { Recorder } from './recorder.ts';

export interface SoakOptions {
  readonly minutes: number;
  readonly seed: number;
  readonly size: FleetSize;
  readonly signal: AbortSignal;
  readonly say: (line: string) => void;
}

export interface Recovery {
  readonly servicesMs: number;
  readonly listsMs: number;
}

/** A process must have found its connections dead, be connected again and have listed within so much after the last fault. */
const LISTS_MS = 10_000;
/** What is not right by then never will be. */
const GIVE_UP_MS = 60_000;
const START_MS = 120_000;
const CLOSE_MS = 10_000;
const CALM_MS = 5_000;
const LOOK_MS = 50;
const PROGRESS_MS = 5_000;
/** A heap may be so much larger (MiB) at the end than when its process had settled. */
const HEAP_GROWTH_MB = 16;

export class Soak {
  readonly options: SoakOptions;
  readonly faults = new Map<string, number>();
  readonly recoveries: Recovery[] = [];
  /** Each fault with its beginning and its end. */
  readonly timeline: { readonly kind: string; readonly of: string; readonly from: string; readonly until: string }[] =
    [];
  readonly memberMemory: { readonly name: string; readonly startMb: number; endMb: number }[] = [];
  rounds = 0;
  judge!: Judge;
  history = new History();
  processes: FleetProcess[] = [];
  pulse!: Pulse;
  isInterrupted = false;
  /** The longest that this process's own event loop stood still, milliseconds. */
  longestOwnStallMs = 0;
  readonly #chance: Chance;
  readonly #loop = monitorEventLoopDelay({ resolution: 10 });
  #cluster!: EtcdCluster;
  #recorders: Recorder[] = [];
  #now: readonly Fault[] = [];
  #startMs = 0;

  constructor(options: SoakOptions) {
    this.options = options;
    this.#chance = new Chance(options.seed);
  }

  /** Resolves when it is over, whatever came of it. Nothing that it started is left. */
  async run(): Promise<void> {
    const { signal } = this.options;
    try {
      await this.#begin();
      const progress = setInterval(() => this.options.say(this.#progress()), PROGRESS_MS);
      try {
        await this.#soak();
      } finally {
        clearInterval(progress);
      }
      if (!signal.aborted) await this.#end();
    } catch (error) {
      if (!signal.aborted) this.judge?.violate('soak', `it could not go on: ${(error as Error).stack}`);
    } finally {
      this.isInterrupted = signal.aborted;
      await this.#destroy();
    }
  }

  async #begin(): Promise<void> {
    const { size, seed, say } = this.options;
    say('starting three members');
    this.#cluster = await startCluster(3);
    const { members } = this.#cluster;
    this.pulse = new Pulse(members);
    this.judge = new Judge(this.history, this.pulse, say);
    this.pulse.start();
    this.#recorders = members.map(({ endpoint }) => new Recorder(this.history, endpoint));
    for (const recorder of this.#recorders) recorder.start();
    const [first] = this.#cluster.endpoints as [string];
    for (const directory of directoriesOf(size)) await etcdctl(first, 'put', `/_dirs${directory}`, 'soak');
    say(`starting ${size.services} services and ${size.watchers} watchers`);
    const plans = planFleet(size);
    this.processes = await Promise.all(
      plans.map((plan, i) =>
        FleetProcess.make(plan, members, seed * 100 + i, {
          heard: (process, client, listing) => this.judge.heard(process, client, listing),
          broke: (what) => this.options.signal.aborted || this.judge.violate('S3', what),
        }),
      ),
    );
    this.judge.services = this.processes.flatMap((process) =>
      process.plan.clients.flatMap(({ service }, client) => (service ? [[service.key, process, client] as const] : [])),
    );
    const startedMs = Date.now();
    for (const process of this.processes) {
      const trouble = { fromMs: 0, untilMs: undefined as number | undefined };
      process.troubles.push(trouble);
      process.start();
      await this.#until(() => process.isReady, START_MS, `${process.plan.name} to be ready`);
      trouble.untilMs = Date.now();
    }
    await this.#until(() => this.#isRight(), START_MS, 'all to be there');
    say(`all are there after ${((Date.now() - startedMs) / 1_000).toFixed(1)} s`);
    await this.#pause(CALM_MS);
    await this.#sample();
    for (const { name, pid } of members) this.memberMemory.push({ name, startMb: residentMb(pid), endMb: 0 });
    this.#loop.enable();
    this.#startMs = Date.now();
  }

  async #soak(): Promise<void> {
    const endMs = this.#startMs + this.options.minutes * 60_000;
    const world: FaultWorld = {
      chance: this.#chance,
      members: this.#cluster.members,
      processes: this.processes,
      directories: directoriesOf(this.options.size),
      pulse: this.pulse,
      judge: this.judge,
      history: this.history,
      recorders: this.#recorders,
    };
    while (Date.now() < endMs) {
      this.rounds += 1;
      for (const process of this.processes) process.order({ do: 'busy' });
      await this.#pause(this.#chance.int(200, 2_000));
      this.#now = drawFaults(world);
      const delays = this.#now.map(() => this.#chance.int(0, 3_000));
      await Promise.all(
        this.#now.map(async (fault, i) => {
          await sleep(delays[i]);
          const from = new Date().toISOString();
          await fault.run();
          this.timeline.push({ kind: fault.kind, of: fault.of, from, until: new Date().toISOString() });
          this.faults.set(fault.kind, (this.faults.get(fault.kind) ?? 0) + 1);
        }),
      );
      await this.#recover();
      this.#now = [];
    }
  }

  /** From the last fault's end on: services within their bound, then lists within theirs. */
  async #recover(): Promise<void> {
    const healedMs = Date.now();
    this.#loop.reset();
    for (const process of this.processes) process.order({ do: 'quiet' });
    const what = this.#now.map(({ kind, of }) => `${kind} (${of})`).join(', ');
    const from = (process: FleetProcess) =>
      Math.max(
        healedMs,
        this.pulse.returnedMs,
        ...process.clients.map(({ connectedMs }) => connectedMs ?? Date.now()),
        this.judge.ghostDeadline(process),
      );
    const servicesMs = await this.#within(
      () => this.judge.missingService(this.processes),
      ({ process, sinceMs = 0 }) => Math.max(from(process), sinceMs) + process.plan.ttl * 1_000 + 1_000,
      (missing) => this.judge.violate('R4', `after ${what}: ${missing}`),
    );
    const listsMs = await this.#within(
      () => this.judge.wrongList(this.processes),
      // The dead that a list may still show go when their leases do.
      () => Math.max(...this.processes.map(from)) + LISTS_MS,
      (wrong) => this.judge.violate('L2', `after ${what}: ${wrong}`),
    );
    this.recoveries.push({ servicesMs: servicesMs - healedMs, listsMs: listsMs - healedMs });
    await this.#until(
      () => this.processes.every((process) => process.isQuiet && process.isReady),
      GIVE_UP_MS,
      'all processes to be quiet',
    );
    this.judge.judge();
    for (const process of this.processes) {
      const isNew = !process.samples.some(({ incarnation }) => incarnation === process.incarnation);
      if (isNew) await process.sample(GIVE_UP_MS);
    }
  }

  /** When nothing was wrong any more. */
  async #within(
    findWrong: () => Wrong | undefined,
    dueMs: (wrong: Wrong) => number,
    violate: (what: string) => void,
  ): Promise<number> {
    const giveUpMs = Date.now() + GIVE_UP_MS;
    let isBroken = false;
    for (;;) {
      const wrong = findWrong();
      const nowMs = Date.now();
      if (!wrong) return nowMs;
      const ownStallMs = this.#loop.max / 1e6;
      this.longestOwnStallMs = Math.max(this.longestOwnStallMs, ownStallMs);
      if (!isBroken && nowMs > dueMs(wrong) + SLACK_MS + 2 * ownStallMs) {
        isBroken = true;
        violate(`${wrong.what}; its process says: ${await wrong.process.explain(wrong.client)}`);
      }
      if (nowMs > giveUpMs) throw new Error(`never right again: ${wrong.what}`);
      await this.#pause(LOOK_MS);
    }
  }

  /** A stretch without faults or changes, the last look at everything, and an orderly end. */
  async #end(): Promise<void> {
    this.options.say('the end: calm, samples, close');
    const endpoint = (this.pulse.leader ?? this.#cluster.members[0])?.endpoint as string;
    const mirrors = async () => (await stored(endpoint, '/_watcher')).map(({ key, mod }) => `${key}@${mod}`).join(' ');
    await this.#pause(CALM_MS);
    const before = await mirrors();
    await this.#pause(CALM_MS);
    if ((await mirrors()) !== before) this.judge.violate('L4', 'mirrors were written while only heartbeats went out');
    await this.#sample();
    this.#judgeResources();
    await this.#checkHistory(endpoint);
    this.judge.judge();
    const ends = await Promise.all(this.processes.map((process) => process.close(CLOSE_MS)));
    for (const [i, end] of ends.entries()) {
      if (end?.code !== 0)
        this.judge.violate('S3', `${this.processes[i]?.plan.name} did not end after close: ${JSON.stringify(end)}`);
    }
    for (const directory of directoriesOf(this.options.size)) await clearForeign(endpoint, directory);
    const onLeases = ['/svc/', '/_sessions/', '/_watcherLock/'];
    const left = (await Promise.all(onLeases.map((prefix) => stored(endpoint, prefix)))).flat().map(({ key }) => key);
    if (left.length > 0) this.judge.violate('S2', `all have closed, and ${left.join(', ')} is left`);
    for (const member of this.#cluster.members) {
      const entry = this.memberMemory.find(({ name }) => name === member.name);
      if (entry) entry.endMb = residentMb(member.pid);
    }
  }

  /** The history that everything was judged by is the store's own. */
  async #checkHistory(endpoint: string): Promise<void> {
    for (const directory of directoriesOf(this.options.size)) {
      const there = (await stored(endpoint, `${directory}/`))
        .map(({ key }) => key.slice(directory.length + 1))
        .join(' ');
      const known = asTold(this.history.directoryAt(directory, this.history.revision), false);
      if (there !== known) this.judge.violate('soak', `the recorded history has "${known}", the store "${there}"`);
    }
  }

  #judgeResources(): void {
    for (const { plan, samples, incarnation } of this.processes) {
      const own = samples.filter((it) => it.incarnation === incarnation).map(({ sample }) => sample);
      const [first, last] = [own[0], own.at(-1)];
      if (!first || !last) continue;
      if (last.sockets > plan.clients.length)
        this.judge.violate('S1', `${plan.name} holds ${last.sockets} sockets for ${plan.clients.length} clients`);
      if (last.heapMb > first.heapMb + HEAP_GROWTH_MB)
        this.judge.violate('S2', `${plan.name}: its heap grew from ${first.heapMb} to ${last.heapMb} MiB`);
    }
  }

  async #sample(): Promise<void> {
    for (const process of this.processes) await process.sample(GIVE_UP_MS);
  }

  #isRight(): boolean {
    return !this.judge.missingService(this.processes) && !this.judge.wrongList(this.processes);
  }

  #progress(): string {
    const { judge } = this;
    const seconds = Math.round((Date.now() - this.#startMs) / 1_000);
    const faults = [...this.faults.values()].reduce((sum, n) => sum + n, 0);
    const now = this.#now.map(({ kind, of }) => `${kind} ${of}`).join(', ') || 'calm';
    return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')} round ${this.rounds}, ${faults} faults, ${judge.listings} listings, ${judge.violations.length} broken; now ${now}`;
  }

  async #until(condition: () => boolean, boundMs: number, what: string): Promise<void> {
    for (const endMs = Date.now() + boundMs; !condition(); await this.#pause(LOOK_MS)) {
      if (Date.now() > endMs) throw new Error(`waited ${boundMs / 1_000} s for ${what}`);
    }
  }

  #pause(ms: number): Promise<void> {
    return sleep(ms, undefined, { signal: this.options.signal });
  }

  async #destroy(): Promise<void> {
    await this.pulse?.stop();
    for (const recorder of this.#recorders) recorder.stop();
    await Promise.all(this.processes.map((process) => process.destroy()));
    await this.#cluster?.destroy();
    this.#loop.disable();
  }
}

/** What an operator could not take away again because the member that was asked had just been struck. */
async function clearForeign(endpoint: string, directory: string): Promise<void> {
  await etcdctl(endpoint, 'del', '--prefix', `${directory}//`);
  await etcdctl(endpoint, 'del', `${directory}/theirs`);
}

async function stored(endpoint: string, prefix: string): Promise<{ key: string; mod: number }[]> {
  const answer = JSON.parse(await etcdctl(endpoint, 'get', '--prefix', prefix, '-w', 'json')) as {
    kvs?: { key: string; mod_revision: number }[];
  };
  return (answer.kvs ?? []).map(({ key, mod_revision }) => ({
    key: Buffer.from(key, 'base64').toString(),
    mod: mod_revision,
  }));
}

function residentMb(pid: number): number {
  const kb = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
  return Number(kb) / 1_024;
}
