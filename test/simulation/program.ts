import type { Heartbeat } from '../../src/ephemeral/api.ts';
import { Chance } from './chance.ts';

/** What users, operators and fate do, each at its time. Everything is named, so that any part of it can be left out. */
export type Act =
  | { readonly kind: 'start'; readonly process: number; readonly candidate: boolean }
  | { readonly kind: 'close' | 'crash' | 'cut'; readonly process: number }
  | {
      readonly kind: 'addKey';
      readonly process: number;
      readonly path: string;
      readonly heartbeat: Heartbeat;
      readonly wait: boolean;
    }
  | { readonly kind: 'update' | 'remove'; readonly process: number; readonly of: number }
  | { readonly kind: 'addDir' | 'removeDir' | 'list'; readonly process: number; readonly path: string }
  | {
      readonly kind: 'watch';
      readonly process: number;
      readonly path: string;
      readonly values: boolean;
      readonly via: 'mirror' | 'direct';
      readonly missing: 'error' | 'wait';
    }
  | { readonly kind: 'unwatch'; readonly process: number; readonly of: number }
  | {
      readonly kind: 'partition';
      readonly process: number;
      readonly ms: number;
      readonly healing: 'resume' | 'end' | 'silent';
    }
  | { readonly kind: 'freeze' | 'stall' | 'deafen'; readonly process: number; readonly ms: number }
  | { readonly kind: 'loseRequests' | 'loseReplies'; readonly process: number; readonly count: number }
  | { readonly kind: 'restart' | 'fill' | 'slow'; readonly ms: number }
  | { readonly kind: 'elect' | 'compact' | 'snapshot' | 'restore' | 'wipe' }
  | { readonly kind: 'put'; readonly key: string; readonly ttl: number }
  | { readonly kind: 'delete'; readonly key: string }
  | { readonly kind: 'deleteFirst'; readonly what: 'lock' | 'fence' | 'marker' | 'shadow' }
  | { readonly kind: 'revoke'; readonly process: number };

export interface Action {
  readonly id: number;
  readonly atMs: number;
  readonly act: Act;
}

export interface Program {
  readonly seed: number;
  readonly ttl: number;
  readonly namespace: string;
  /** The longest a message takes when nothing is slow; 0: they arrive at once. */
  readonly delayMs: number;
  /** Only outages that nobody may notice: short ones, far enough apart. */
  readonly isBrief: boolean;
  /** At the end the master of a mirror goes deaf, or closes. */
  readonly exam: 'none' | 'deaf master' | 'closing master';
  readonly actions: readonly Action[];
}

/** When users and fate are done. */
export const FAULTS_END_MS = 10_000;

const DIRECTORIES = ['/svc', '/svc', '/svc', '/svc/deep', '/other'];
const PATHS = [
  '/svc/a',
  '/svc/a',
  '/svc/b',
  '/svc/c',
  '/svc/d',
  '/svc/deep',
  '/svc/deep/a',
  '/svc/deep/b',
  '/other/x',
  '/top',
];
const ADDED = ['/svc', '/svc/e', '/svc/deep', '/svc/deep/f', '/other'];
/** What no path can name, or only just. */
const FOREIGN = [
  '/svc//x',
  '/svc/',
  '/svc/_hidden',
  '/svc/a\u0001',
  '/svc/../x',
  '/_watcherDir/svc//zombie',
  '/svc/a',
  '/svc/foreign',
  '/svc/deep/x',
  '/other/x',
];

/** How often each happens. */
const USERS = {
  addKey: 9,
  update: 7,
  remove: 5,
  watch: 8,
  unwatch: 2,
  addDir: 2,
  removeDir: 2,
  list: 2,
  start: 2,
  close: 1,
  crash: 1,
};
const FATE = {
  partition: 4,
  cut: 3,
  freeze: 4,
  stall: 3,
  deafen: 1,
  loseRequests: 2,
  loseReplies: 3,
  restart: 3,
  fill: 1,
  slow: 1,
  elect: 1,
  compact: 4,
  snapshot: 1,
  restore: 1,
  wipe: 0.4,
  put: 3,
  delete: 2,
  deleteFirst: 3,
  revoke: 1,
};

class Writer {
  readonly #chance: Chance;
  readonly #actions: Action[] = [];
  readonly #keys: { id: number; process: number }[] = [];
  readonly #watches: { id: number; process: number }[] = [];
  #processes = 0;
  #mayRestore = true;

  constructor(chance: Chance) {
    this.#chance = chance;
  }

  /** In order of time. */
  get actions(): readonly Action[] {
    return this.#actions.sort((a, b) => a.atMs - b.atMs);
  }

  add(atMs: number, act: Act | undefined): void {
    if (!act) return;
    const id = this.#actions.length + 1;
    this.#actions.push({ id, atMs, act });
    if (act.kind === 'addKey') this.#keys.push({ id, process: act.process });
    if (act.kind === 'watch') this.#watches.push({ id, process: act.process });
  }

  start(): Act {
    return { kind: 'start', process: ++this.#processes, candidate: this.#chance.is(0.75) };
  }

  user(): Act | undefined {
    const chance = this.#chance;
    const kind = chance.weighted(USERS);
    const process = chance.int(1, this.#processes);
    switch (kind) {
      case 'start':
        return this.#processes < 7 ? this.start() : undefined;
      case 'close':
      case 'crash':
        return { kind, process };
      case 'addKey':
        return {
          kind,
          process,
          path: chance.pick(PATHS),
          heartbeat: chance.is(0.3) ? 'put' : 'lease',
          wait: chance.is(0.5),
        };
      case 'update':
      case 'remove': {
        const of = chance.pick(this.#keys.slice(-4));
        return of && { kind, process: of.process, of: of.id };
      }
      case 'unwatch': {
        const of = chance.pick(this.#watches);
        return of && { kind, process: of.process, of: of.id };
      }
      case 'watch':
        return {
          kind,
          process,
          path: chance.is(0.04) ? '' : chance.pick(DIRECTORIES),
          values: chance.is(0.4),
          via: chance.is(0.2) ? 'direct' : 'mirror',
          missing: chance.is(0.9) ? 'wait' : 'error',
        };
      case 'list':
        return { kind, process, path: chance.pick(DIRECTORIES) };
      case 'addDir':
      case 'removeDir':
        return { kind, process, path: chance.pick(ADDED) };
    }
  }

  fate(): Act | undefined {
    const chance = this.#chance;
    const kind = chance.weighted(FATE);
    const process = chance.int(1, this.#processes);
    switch (kind) {
      case 'partition':
        return { kind, process, ms: chance.int(50, 5_000), healing: chance.pick(['resume', 'end', 'silent'] as const) };
      case 'freeze':
        return { kind, process, ms: chance.int(100, 5_000) };
      case 'stall':
      case 'deafen':
        return { kind, process, ms: chance.int(100, 6_000) };
      case 'loseRequests':
      case 'loseReplies':
        return { kind, process, count: chance.int(1, 3) };
      case 'restart':
      case 'fill':
        return { kind, ms: chance.int(0, 4_000) };
      case 'slow':
        return { kind, ms: chance.int(500, 4_000) };
      case 'restore':
      case 'snapshot':
        // A second one could not be told from the first by its term; where its revision has passed what was seen, by nothing.
        if (kind === 'restore' && !this.#mayRestore) return undefined;
        if (kind === 'restore') this.#mayRestore = false;
        return { kind };
      case 'elect':
      case 'compact':
      case 'wipe':
        return { kind };
      case 'put':
        return { kind, key: chance.pick(FOREIGN), ttl: chance.is(0.5) ? chance.int(2, 4) : 0 };
      case 'delete':
        return { kind, key: chance.pick([...PATHS, ...FOREIGN]) };
      case 'deleteFirst':
        return { kind, what: chance.pick(['lock', 'fence', 'marker', 'shadow'] as const) };
      case 'cut':
      case 'revoke':
        return { kind, process };
    }
  }

  /** An outage of less than half a ttl, or a restart. */
  shortOutage(ttlMs: number): Act {
    const chance = this.#chance;
    const process = chance.int(1, this.#processes);
    const kind = chance.pick(['partition', 'cut', 'restart'] as const);
    if (kind === 'cut') return { kind, process };
    if (kind === 'restart') return { kind, ms: chance.int(0, 3_000) };
    return {
      kind,
      process,
      ms: chance.int(1, ttlMs / 2 - 1),
      healing: chance.pick(['resume', 'end', 'silent'] as const),
    };
  }

  /** A moment that has shown itself to be hard: a write is held up on its way, and its key is taken away meanwhile. */
  lateWrite(atMs: number): void {
    const chance = this.#chance;
    const process = chance.int(1, this.#processes);
    const ms = chance.int(1_500, 4_500);
    this.add(atMs, { kind: 'freeze', process, ms });
    this.add(atMs + 1, { kind: 'addKey', process, path: chance.pick(PATHS), heartbeat: 'lease', wait: false });
    const of = this.#keys.at(-1)?.id ?? 0;
    const then = chance.int(2, ms);
    this.add(atMs + then, { kind: chance.is(0.7) ? 'remove' : 'update', process, of });
  }
}

export function writeProgram(seed: number): Program {
  const chance = new Chance(seed);
  const isBrief = chance.is(0.12);
  const ttl = chance.is(0.8) ? 2 : 3;
  const writer = new Writer(chance);
  for (let count = chance.int(2, 4); count > 0; count -= 1) writer.add(chance.int(0, 100), writer.start());
  const end = FAULTS_END_MS - 500;
  const users = chance.int(8, 30);
  for (let count = 0; count < users; count += 1) writer.add(chance.int(100, end), writer.user());
  if (isBrief) {
    const ttlMs = ttl * 1_000;
    // A restart takes up to 3 s, and the next outage comes when all have renewed their leases again.
    for (let atMs = chance.int(500, 2_000); atMs < end; atMs += 3_000 + 2 * ttlMs)
      writer.add(atMs, writer.shortOutage(ttlMs));
  } else {
    const faults = chance.int(1, 16);
    for (let count = 0; count < faults; count += 1) writer.add(chance.int(100, end), writer.fate());
    if (chance.is(0.3)) writer.lateWrite(chance.int(200, end - 4_500));
  }
  return {
    seed,
    ttl,
    namespace: chance.pick(['', '/ns', 'app']),
    delayMs: chance.pick([0, 0, 0, 5, 30]),
    isBrief,
    exam: chance.pick(['none', 'none', 'deaf master', 'closing master'] as const),
    actions: writer.actions,
  };
}

export function describe({ id, atMs, act }: Action): string {
  const { kind, ...details } = act;
  const words = Object.entries(details).map(([name, value]) =>
    name === 'process' ? `p${value}` : `${name} ${JSON.stringify(value)}`,
  );
  return `${String(atMs).padStart(6)} ms  #${id} ${[kind, ...words].join(' ')}`;
}
