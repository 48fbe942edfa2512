/** What is promised, held against what the store went through and what the clients were told. */
import type { FleetProcess, Heard } from './fleet.ts';
import { asTold, type Change, type History } from './history.ts';
import type { ServicePlan, WatcherPlan } from './plan.ts';
import { ghostDeadlineMs, type Pulse } from './pulse.ts';

export interface Violation {
  readonly promise: string;
  readonly what: string;
  readonly atMs: number;
}

/** What clients may notice late on a machine that does other things as well. */
export const SLACK_MS = 500;
/** An ended watch or lease shows in the history before its client's own word of it has come through the pipe. */
const PIPE_MS = 1_500;

/** A delete that an operator sent to a frozen member is done when that goes on. */
const INTERFERENCE_MS = 12_000;

/**
 * A leader that stalled takes leases for expired that were renewed at its successor (etcd#15247). It revokes 16 at a time: where
 * those get lost on its way back, the others follow when they time out, 7 s later.
 */
const STALE_LEADER_MS = 9_000;

interface PendingListing {
  readonly process: FleetProcess;
  readonly client: number;
  readonly before: Heard | undefined;
  readonly listing: Heard;
}

/** Something that is not as it is to be, and whose. */
export interface Wrong {
  readonly process: FleetProcess;
  readonly client: number;
  readonly what: string;
  /** When the store let it go. */
  readonly sinceMs?: number | undefined;
}

export interface Lag {
  readonly ms: number;
  readonly who: string;
  readonly via: 'mirror' | 'direct';
  readonly calledItselfLive: boolean;
  /** Something had befallen the watching process or its network. */
  readonly wasTroubled: boolean;
  readonly at: string;
}

interface Silenced {
  readonly process: FleetProcess;
  readonly incarnation: number;
  readonly atMs: number;
  /** It was only frozen, and goes on from then. */
  untilMs: number;
}

/** An operator's act on one key. */
interface Interference {
  readonly key: string;
  readonly atMs: number;
}

export class Judge {
  readonly violations: Violation[] = [];
  readonly interferences: Interference[] = [];
  /** When a member did not answer. */
  readonly memberOutages: { readonly fromMs: number; untilMs: number }[] = [];
  listings = 0;
  departures = 0;
  ghostsChecked = 0;
  /** From a change in the store until a list showed it. */
  readonly lags: Lag[] = [];
  /** How long a list called itself stale at the longest. */
  longestStaleMs = 0;
  /** How long after its due time a dead process's key went, at the worst; negative: that much before. */
  worstGhostMs = Number.NEGATIVE_INFINITY;
  readonly #history: History;
  readonly #pulse: Pulse;
  readonly #pending: PendingListing[] = [];
  readonly #silenced: Silenced[] = [];
  readonly #judged = new Map<string, number>();
  readonly #staleSince = new Map<string, number>();

  readonly #say: (line: string) => void;

  constructor(history: History, pulse: Pulse, say: (line: string) => void) {
    this.#say = say;
    this.#history = history;
    this.#pulse = pulse;
  }

  violate(promise: string, what: string): void {
    this.violations.push({ promise, what, atMs: Date.now() });
    this.#say(`BROKEN ${promise}: ${what}`);
  }

  heard(process: FleetProcess, client: number, listing: Heard): void {
    const last = process.clients[client]?.last;
    const before = last?.subscription === listing.subscription ? last : undefined;
    this.#pending.push({ process, client, before, listing });
    const id = `${process.plan.name} ${client}`;
    if (listing.status === 'stale') {
      if (!this.#staleSince.has(id)) this.#staleSince.set(id, listing.atMs);
      return;
    }
    this.longestStaleMs = Math.max(this.longestStaleMs, listing.atMs - (this.#staleSince.get(id) ?? listing.atMs));
    this.#staleSince.delete(id);
  }

  /** A killed process, or a frozen one: its keys are to go. */
  silenced(process: FleetProcess): Silenced {
    const silenced = {
      process,
      incarnation: process.incarnation,
      atMs: Date.now(),
      untilMs: Number.POSITIVE_INFINITY,
    };
    this.#silenced.push(silenced);
    return silenced;
  }

  /** Of what killed predecessors of this process left, the latest that may still stand. */
  ghostDeadline(process: FleetProcess): number {
    const mine = this.#silenced.filter((it) => it.process === process && it.untilMs === Number.POSITIVE_INFINITY);
    return Math.max(0, ...mine.map(({ atMs }) => this.#deadline(atMs, process)));
  }

  /** All that can be judged by now. */
  judge(): void {
    this.#judgeListings();
    this.#judgeGhosts();
    this.#judgeChanges();
  }

  /** The first service that is not as its process wants it, or undefined when all are. */
  missingService(processes: readonly FleetProcess[]): Wrong | undefined {
    for (const process of processes) {
      for (const [client, { service }] of process.plan.clients.entries()) {
        if (!service) continue;
        const asked = process.clients[client]?.asked;
        const last = this.#history.of(service.key).at(-1);
        if (asked === undefined || last?.value !== asked) {
          const what = `${service.key} is ${last?.value}, and ${asked} was asked for`;
          return { process, client, what, sinceMs: last?.value === undefined ? last?.atMs : undefined };
        }
      }
    }
    return undefined;
  }

  /** The first list that is not what the store holds, or not live. */
  wrongList(processes: readonly FleetProcess[]): Wrong | undefined {
    for (const process of processes) {
      for (const [client, { watcher }] of process.plan.clients.entries()) {
        if (!watcher) continue;
        const last = process.clients[client]?.last;
        const stored = asTold(this.#history.directoryAt(watcher.path, this.#history.revision), watcher.values);
        if (last?.status === 'live' && last.told === stored) continue;
        const { via, values } = watcher;
        const what = `client ${client} of ${process.plan.name} (${watcher.path}, ${via}${values ? ', values' : ''}) has ${last?.status} "${last?.told}" at ${last?.revision}, the store "${stored}"`;
        return { process, client, what };
      }
    }
    return undefined;
  }

  #deadline(atMs: number, process: FleetProcess): number {
    const { leaderChangesMs } = this.#pulse;
    return ghostDeadlineMs(atMs, process.plan.ttl * 1_000, leaderChangesMs, this.#pulse.troublesUntil(Date.now()));
  }

  #judgeListings(): void {
    while (this.#pending[0] && this.#pending[0].listing.revision <= this.#history.revision) {
      const { process, client, before, listing } = this.#pending.shift() as PendingListing;
      const { path, values } = watcherOf(process, client);
      this.listings += 1;
      const who = `client ${client} of ${process.plan.name}, ${path} at ${listing.revision}`;
      const stored = asTold(this.#history.directoryAt(path, listing.revision), values);
      if (listing.told !== stored) this.violate('L1', `${who}: told "${listing.told}", the store had "${stored}"`);
      if (listing.epoch !== 0) this.violate('L6', `${who}: a new epoch, though nothing was restored`);
      if (!before) continue;
      if (listing.revision < before.revision) this.violate('L1', `${who}: the revision fell from ${before.revision}`);
      const changedMs = this.#history.firstChangeMs(path, values, before.revision, listing.revision);
      if (changedMs === undefined) continue;
      const lagMs = Math.max(0, listing.atMs - changedMs);
      this.lags.push({
        ms: lagMs,
        who,
        via: watcherOf(process, client).via,
        calledItselfLive: before.status === 'live',
        wasTroubled: process.wasTroubled(changedMs - 2_000, listing.atMs),
        at: new Date(listing.atMs).toISOString(),
      });
    }
  }

  #judgeGhosts(): void {
    const nowMs = Date.now();
    for (const silenced of [...this.#silenced]) {
      const { process, incarnation, atMs, untilMs } = silenced;
      const deadlineMs = this.#deadline(atMs, process);
      // What is written about the moment of death may still be on its way to the history.
      if (nowMs < deadlineMs + PIPE_MS) continue;
      this.#silenced.splice(this.#silenced.indexOf(silenced), 1);
      if (untilMs < deadlineMs) continue;
      for (const { service } of process.plan.clients) {
        if (service) this.#judgeGhost(service, `${process.plan.name}#${incarnation}-`, atMs, deadlineMs);
      }
    }
  }

  #judgeGhost({ key }: ServicePlan, by: string, atMs: number, deadlineMs: number): void {
    const changes = this.#history.of(key);
    // What was on its way when it fell silent is still written.
    const last = changes.findLastIndex((change) => change.atMs <= atMs + SLACK_MS);
    if (!changes[last]?.value?.startsWith(by)) return;
    const then = changes[last + 1];
    this.ghostsChecked += 1;
    const overMs = (then?.atMs ?? Date.now()) - deadlineMs;
    this.worstGhostMs = Math.max(this.worstGhostMs, overMs);
    if (overMs > SLACK_MS) this.violate('R2', `${key} of ${by} stood for ${Math.round(overMs)} ms longer than it may`);
  }

  #judgeChanges(): void {
    const untilMs = Date.now() - PIPE_MS;
    for (const [key, process, client] of this.services) {
      const changes = this.#history.of(key);
      let next = this.#judged.get(key) ?? 0;
      for (; next < changes.length && (changes[next] as Change).atMs < untilMs; next += 1) {
        this.#judgeChange(changes, next, process, client);
      }
      this.#judged.set(key, next);
    }
  }

  /** Set when the fleet is made. */
  services: readonly (readonly [key: string, process: FleetProcess, client: number])[] = [];

  #judgeChange(changes: readonly Change[], at: number, process: FleetProcess, client: number): void {
    const { key, value, atMs } = changes[at] as Change;
    if (value === undefined) {
      this.departures += 1;
      if (!this.#isExplained(changes[at - 1], key, process, client, atMs)) {
        this.violate(
          'R4',
          `${key} went at ${new Date(atMs).toISOString()}, and nothing had happened to ${process.plan.name}`,
        );
      }
      return;
    }
    const [incarnation, version] = versionOf(value, process);
    if (incarnation === undefined) this.violate('R3', `${key} = ${value}, which its owner never wrote`);
    const before = changes.slice(0, at).findLast((change) => change.value !== undefined);
    const [earlier, older] = before?.value === undefined ? [0, 0] : versionOf(before.value, process);
    if ((incarnation ?? 0) < (earlier ?? 0) || (incarnation === earlier && (version ?? 0) < (older ?? 0))) {
      this.violate('R3', `${key} went back from ${before?.value} to ${value}`);
    }
  }

  #isExplained(before: Change | undefined, key: string, process: FleetProcess, client: number, atMs: number): boolean {
    const ttlMs = process.plan.ttl * 1_000;
    const sinceMs = atMs - ttlMs - 2_000;
    const isLongOutage = ({ fromMs, untilMs }: { fromMs: number; untilMs: number }) =>
      untilMs - fromMs > ttlMs / 2 && untilMs >= Math.min(sinceMs, atMs - STALE_LEADER_MS) && fromMs <= atMs;
    return (
      // Given up since it was written, at the latest now: a client that closed while nobody answered leaves it to its lease.
      process.wasAbsent(client, before?.atMs ?? atMs - PIPE_MS, atMs + PIPE_MS) ||
      // For less than half a ttl nobody may notice; for longer those who were connected there may.
      this.memberOutages.some(isLongOutage) ||
      process.wasTroubled(sinceMs, atMs) ||
      this.interferences.some((it) => it.key === key && Math.abs(atMs - it.atMs) < INTERFERENCE_MS) ||
      this.#pulse.leaderChangesMs.some((changeMs) => changeMs >= sinceMs - 2_000 && changeMs <= atMs + 1_000) ||
      this.#pulse.troublesUntil(Date.now()).some((it) => it.untilMs >= sinceMs && it.fromMs <= atMs)
    );
  }
}

function watcherOf(process: FleetProcess, client: number): WatcherPlan {
  return process.plan.clients[client]?.watcher as WatcherPlan;
}

function versionOf(value: string, process: FleetProcess): [incarnation?: number, version?: number] {
  const match = /^(.+)#(\d+)-(\d+)$/.exec(value);
  return match?.[1] === process.plan.name ? [Number(match[2]), Number(match[3])] : [];
}
