/** N members in one process, and what is asked of all of them. */
import { createHash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Goal, generationName, type Member, type MemberOptions, type OpenMember } from './member.ts';
import type {
  AwaitAnswer,
  AwaitOrder,
  ChangesAnswer,
  ChangesOrder,
  IdleAnswer,
  IdleOrder,
  OpenAnswer,
  OpenOrder,
  Percentiles,
  ProbeOrder,
  StormAnswer,
  StormOrder,
} from './protocol.ts';
import { bytesRead, connected, owned, stopOwning } from './sockets.ts';

/** Members opened at the same time: more would only queue up in the server. */
const OPENING = 25;
const PATIENCE_MS = 60_000;
/** A timer may be a millisecond late; so much before a change is due, it is waited for turn by turn. */
const SPIN_MS = 3;

interface Awaited {
  readonly goal: Goal;
  readonly missing: Set<Member>;
  /** When each member came to it. */
  readonly atMs: number[];
  readonly reached: (atMs: readonly number[]) => void;
}

export class Fleet {
  readonly #openMember: OpenMember;
  readonly #members: Member[] = [];
  #changer: Member | undefined;
  #awaited: Awaited | undefined;
  #generation = 0;
  #isJoined = false;
  /** Heartbeats are heard: it never gets quiet. */
  #isNoisy = false;
  #quietMs = 0;

  constructor(openMember: OpenMember) {
    this.#openMember = openMember;
  }

  async open({ n, endpoint, namespace, ttl, heartbeat, quietMs }: OpenOrder): Promise<OpenAnswer> {
    this.#quietMs = quietMs;
    this.#isNoisy = heartbeat === 'put';
    const options = { endpoint, namespace, ttl, heartbeat };
    for (let start = 0; start < n; start += OPENING) {
      const size = Math.min(OPENING, n - start);
      this.#members.push(
        ...(await Promise.all(Array.from({ length: size }, (_, i) => this.#openWatcher(start + i, options)))),
      );
    }
    this.#changer = await owned(n, () => this.#openMember({ ...options, index: n }));
    stopOwning();
    return { sockets: connected() };
  }

  async storm({ phase, spreadMs }: StormOrder): Promise<StormAnswer> {
    const before = this.#members.map((member) => ({ ...member.heard }));
    const bytesBefore = bytesRead();
    const cpuBefore = process.cpuUsage();
    if (phase !== 'leave') this.#generation += 1;
    const generation = generationName(this.#generation);
    const isJoined = phase !== 'leave';
    const reached = this.#until({ size: isJoined ? this.#members.length : 0, generation });
    const calls = await this.#spread(spreadMs, async (member, i) => {
      if (phase !== 'join') await member.leave();
      if (phase !== 'leave') await member.join(`${generation}-${String(i).padStart(5, '0')}`);
    });
    const endMs = last(await reached);
    await calls.done;
    this.#isJoined = isJoined;
    await this.#quiet();
    const { user, system } = process.cpuUsage(cpuBefore);
    const heard = this.#members.map((member, i) => ({
      isMaster: member.isMaster,
      messages: member.heard.messages - (before[i]?.messages ?? 0),
      events: member.heard.events - (before[i]?.events ?? 0),
    }));
    const watchers = heard.filter(({ isMaster }) => !isMaster);
    return {
      ms: endMs - calls.lastCallMs,
      messages: watchers.map(({ messages }) => messages),
      events: watchers.map(({ events }) => events),
      masterMessages: heard.find(({ isMaster }) => isMaster)?.messages ?? 0,
      bytesRead: bytesRead() - bytesBefore,
      cpuMs: (user + system) / 1_000,
      checksums: this.#checksums(),
    };
  }

  async changes({ count, intervalMs }: ChangesOrder): Promise<ChangesAnswer> {
    const changer = this.#changer;
    if (!changer) throw new Error('open the fleet first');
    const present = this.#isJoined ? this.#members.length : 0;
    const latenciesMs: number[] = [];
    const watchersMs: number[] = [];
    let dueMs = performance.now() + intervalMs;
    for (let i = 0; i < count; i += 1, dueMs += intervalMs) {
      await due(dueMs);
      const joins = i % 2 === 0;
      const reached = this.#until({ size: present + (joins ? 1 : 0) });
      const [atMs] = await Promise.all([reached, joins ? changer.join('probe-0') : changer.leave()]);
      latenciesMs.push(last(atMs) - dueMs);
      for (const one of atMs) watchersMs.push(one - dueMs);
    }
    if (count % 2 === 1) {
      const reached = this.#until({ size: present });
      await changer.leave();
      await reached;
    }
    await this.#quiet();
    return { latenciesMs, watcherMs: percentiles(watchersMs), checksums: this.#checksums() };
  }

  async idle({ ms }: IdleOrder): Promise<IdleAnswer> {
    const master = this.#members.findIndex(({ isMaster }) => isMaster);
    const masterBytes = () => (master < 0 ? 0 : bytesRead(master));
    const before = this.#members.map(({ heard }) => heard.messages);
    const [allBefore, masterBefore, cpuBefore, startMs] = [
      bytesRead(),
      masterBytes(),
      process.cpuUsage(),
      performance.now(),
    ];
    await sleep(ms);
    const { user, system } = process.cpuUsage(cpuBefore);
    const messages = this.#members.map(({ heard }, i) => heard.messages - (before[i] ?? 0));
    const masterBytesRead = masterBytes() - masterBefore;
    return {
      ms: performance.now() - startMs,
      messages: messages.filter((_, i) => i !== master),
      masterMessages: messages[master] ?? 0,
      bytesRead: bytesRead() - allBefore - masterBytesRead,
      masterBytesRead,
      cpuMs: (user + system) / 1_000,
      checksums: this.#checksums(),
    };
  }

  async probe({ joins }: ProbeOrder): Promise<object> {
    if (joins) await this.#changer?.join('probe-0');
    else await this.#changer?.leave();
    return {};
  }

  async await({ size }: AwaitOrder): Promise<AwaitAnswer> {
    await this.#until({ size });
    return { atNs: String(process.hrtime.bigint()) };
  }

  async close(): Promise<void> {
    const members = this.#changer ? [...this.#members, this.#changer] : this.#members;
    await Promise.all(members.map((member) => member.close().catch(() => {})));
  }

  async #openWatcher(index: number, options: Omit<MemberOptions, 'index' | 'onChange'>): Promise<Member> {
    let member: Member | undefined;
    const onChange = () => {
      if (member) this.#changed(member);
    };
    member = await owned(index, () => this.#openMember({ ...options, index, onChange }));
    return member;
  }

  #changed(member: Member): void {
    const awaited = this.#awaited;
    if (!awaited?.missing.has(member) || !member.holds(awaited.goal)) return;
    awaited.missing.delete(member);
    awaited.atMs.push(performance.now());
    if (awaited.missing.size > 0) return;
    this.#awaited = undefined;
    awaited.reached(awaited.atMs);
  }

  /** The moments when the members' lists came to the goal, in order. */
  #until(goal: Goal): Promise<readonly number[]> {
    return new Promise((resolve, reject) => {
      const missing = new Set(this.#members.filter((member) => !member.holds(goal)));
      if (missing.size === 0) return resolve([performance.now()]);
      const timer = setTimeout(() => {
        this.#awaited = undefined;
        reject(new Error(`${missing.size} of ${this.#members.length} members did not come to ${JSON.stringify(goal)}`));
      }, PATIENCE_MS);
      const reached = (atMs: readonly number[]) => {
        clearTimeout(timer);
        resolve(atMs);
      };
      this.#awaited = { goal, missing, atMs: [], reached };
    });
  }

  async #spread(spreadMs: number, call: (member: Member, index: number) => Promise<void>) {
    const startMs = performance.now();
    const done: Promise<void>[] = [];
    for (const [i, member] of this.#members.entries()) {
      const waitMs = startMs + (spreadMs * i) / this.#members.length - performance.now();
      if (spreadMs > 0 && waitMs > 0) await sleep(waitMs);
      done.push(call(member, i));
    }
    return { lastCallMs: spreadMs > 0 ? performance.now() : startMs, done: Promise.all(done) };
  }

  async #quiet(): Promise<void> {
    if (this.#isNoisy) return;
    const total = () => this.#members.reduce((sum, { heard }) => sum + heard.messages, 0);
    for (let before = -1, now = total(); now !== before; now = total()) {
      before = now;
      await sleep(this.#quietMs);
    }
  }

  #checksums(): string[] {
    const sums = this.#members.map((member) => createHash('sha256').update(member.names().join('\n')).digest('hex'));
    return [...new Set(sums)];
  }
}

function last(values: readonly number[]): number {
  return values.at(-1) ?? Number.NaN;
}

function percentiles(values: number[]): Percentiles {
  const sorted = Float64Array.from(values).sort();
  const at = (q: number) => sorted[Math.floor((sorted.length - 1) * q)] ?? Number.NaN;
  return { p50: at(0.5), p99: at(0.99), p999: at(0.999) };
}

async function due(atMs: number): Promise<void> {
  const waitMs = atMs - performance.now() - SPIN_MS;
  if (waitMs > 0) await sleep(waitMs);
  while (performance.now() < atMs) await new Promise((resolve) => setImmediate(resolve));
}
