/** What heartbeats cost while nothing changes. */
import { type Bench, checkAgreement, closeFleets, openFleets } from '../bench.ts';
import type { Contestant, ContestantId } from '../contestants.ts';
import { mean } from '../statistics.ts';

/** Seconds. */
const TTL = 5;
/** The least that etcd grants. */
const QUICK_TTL = 2;
/** A put-heartbeat's part of the ttl. */
const PUT_FRACTION = 0.4;

export type Heartbeat = 'lease' | 'put';

/** By hand nothing but the lease is renewed; Moleculer puts. */
const HEARTBEATS: Partial<Record<ContestantId, readonly Heartbeat[]>> = {
  direct: ['put', 'lease'],
  mirror: ['put', 'lease'],
  etcd3: ['lease'],
  moleculer: ['put'],
};

export function refreshName(contestant: string, heartbeat: Heartbeat): string {
  return `${contestant}, ${heartbeat} heartbeats`;
}

async function one(bench: Bench, contestant: Contestant, n: number, heartbeat: Heartbeat): Promise<void> {
  const { options, samples } = bench;
  const ttl = options.quick ? QUICK_TTL : TTL;
  const periodMs = ttl * PUT_FRACTION * 1_000;
  const entrants = await openFleets(bench, [contestant], n, { ttl, heartbeat });
  try {
    for (const { fleet } of entrants) {
      if (contestant.isWatching) {
        await fleet.order({ op: 'storm', phase: 'join', spreadMs: options.quick ? 0 : periodMs });
      } else {
        // Until each has asked, and asked again.
        await fleet.order({ op: 'idle', ms: 2 * periodMs });
      }
      const serverBefore = contestant.serverCpuMs();
      const answer = await fleet.order({ op: 'idle', ms: periodMs });
      const serverAfter = contestant.serverCpuMs();
      checkAgreement(bench, `refresh, ${contestant.name}, ${n} clients`, [answer.checksums]);
      const key = { measurement: 'refresh', of: refreshName(contestant.name, heartbeat), n };
      const add = (metric: string, unit: string, value: number) => samples.add({ ...key, metric }, unit, value);
      const seconds = answer.ms / 1_000;
      const sum = answer.messages.reduce((total, messages) => total + messages, 0);
      add('messages a period at a watcher', 'messages', mean(answer.messages));
      add('messages a period at the master', 'messages', answer.masterMessages);
      add('messages a period, all', 'messages', sum + answer.masterMessages);
      add('bytes a second, all watchers', 'bytes', answer.bytesRead / seconds);
      add('bytes a second, master', 'bytes', answer.masterBytesRead / seconds);
      add('CPU of clients a second', 'ms', answer.cpuMs / seconds);
      if (serverBefore !== undefined && serverAfter !== undefined) {
        add('CPU of servers a second', 'ms', (serverAfter - serverBefore) / seconds);
      }
    }
  } finally {
    await closeFleets(entrants);
  }
}

export async function refresh(bench: Bench): Promise<void> {
  const { sizes } = bench.options;
  // Nobody hears a lease: two points show it.
  const ends = [sizes[0], sizes.at(-1)];
  for (const n of sizes) {
    for (const contestant of bench.contestants.filter(({ most }) => n <= most)) {
      for (const heartbeat of HEARTBEATS[contestant.id] ?? []) {
        if (heartbeat === 'lease' && !ends.includes(n)) continue;
        bench.say(`refresh: ${n} clients, ${refreshName(contestant.name, heartbeat)}`);
        await one(bench, contestant, n, heartbeat);
      }
    }
  }
}
