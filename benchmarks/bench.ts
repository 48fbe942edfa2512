/** What each measurement is given. */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Contestant } from './contestants.ts';
import type { EtcdServer } from './etcd-server.ts';
import { FleetProcess } from './fleet-process.ts';
import type { BenchOptions } from './options.ts';
import type { Samples } from './samples.ts';

export interface Bench {
  readonly options: BenchOptions;
  readonly server: EtcdServer;
  readonly contestants: readonly Contestant[];
  readonly samples: Samples;
  /** What came out wrong: a list that differs, a connection that is shared. Any of these fails the run. */
  readonly faults: string[];
  /** Aborted when a signal asked for an end: fleets are killed then, what else goes on for long looks here. */
  readonly stop: AbortSignal;
  say(line: string): void;
}

export interface Entrant {
  readonly contestant: Contestant;
  readonly fleet: FleetProcess;
}

/** So long that neither keepalives nor expiry are part of what is measured (seconds). */
const LEASE_TTL = 120;

export function quietMs({ quick }: BenchOptions): number {
  return quick ? 60 : 150;
}

let opened = 0;

/** One fleet for each contestant, all sessions made and everything used once. */
export async function openFleets(
  bench: Bench,
  contestants: readonly Contestant[],
  n: number,
  session: { readonly ttl?: number; readonly heartbeat?: 'lease' | 'put' } = {},
): Promise<Entrant[]> {
  const entrants: Entrant[] = [];
  try {
    for (const contestant of contestants) {
      opened += 1;
      const fleet = new FleetProcess(contestant.name, contestant.command);
      entrants.push({ contestant, fleet });
      const namespace = `${bench.server.namespace}/${opened}`;
      const { ttl = LEASE_TTL, heartbeat = 'lease' } = session;
      const { endpoint } = contestant;
      const order = { op: 'open', n, endpoint, namespace, ttl, heartbeat, quietMs: quietMs(bench.options) } as const;
      const { sockets } = await fleet.order(order);
      // One more makes the changes.
      if (contestant.isWatching && sockets !== n + 1)
        bench.faults.push(`${contestant.name}: ${sockets} sockets for ${n + 1} clients`);
    }
    return entrants;
  } catch (error) {
    await closeFleets(entrants);
    throw error;
  }
}

export async function closeFleets(entrants: readonly Entrant[]): Promise<void> {
  for (const { fleet } of entrants) await fleet.close();
}

/** All members of all fleets agree, and with each other, about what is there. */
export function checkAgreement(bench: Bench, what: string, checksums: readonly (readonly string[])[]): void {
  const different = new Set(checksums.flat());
  if (different.size !== 1) bench.faults.push(`${what}: ${different.size} different final lists`);
}

/** Each round begins with another one, so that none always comes after the same. */
export function rotated<T>(items: readonly T[], round: number): readonly T[] {
  const start = round % Math.max(1, items.length);
  return [...items.slice(start), ...items.slice(0, start)];
}

/** Profiles what the fleets do meanwhile, if that was asked for. */
export async function profiled(
  bench: Bench,
  entrants: readonly Entrant[],
  label: string,
  work: () => Promise<void>,
): Promise<void> {
  const { profile } = bench.options;
  if (profile === undefined) return work();
  mkdirSync(profile, { recursive: true });
  const node = entrants.filter(({ contestant }) => contestant.command[0] === process.execPath);
  for (const { fleet } of node) await fleet.order({ op: 'profile' });
  await work();
  for (const { contestant, fleet } of node) {
    const file = join(profile, `${label}-${contestant.name.replace(/\W+/g, '-')}.cpuprofile`);
    await fleet.order({ op: 'profile', file });
  }
}
