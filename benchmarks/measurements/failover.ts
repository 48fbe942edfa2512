/** How long a mirror tells nothing after its master is killed, and after it closes. */
import type { Bench } from '../bench.ts';
import { NAMES, nodeFleet } from '../contestants.ts';
import { FleetProcess } from '../fleet-process.ts';
import { DETECT_TTL } from './detect.ts';

export const FAILOVER_WATCHERS = 10;
const REPEATS = 5;
/** Changes go on all the time, more than a mirror's gap between two markers apart; the longest is the gap. */
const INTERVAL_MS = 60;
const CHANGES = 30;
const AFTER_MS = 10 * INTERVAL_MS;

type How = 'killed' | 'closed';

async function gapMs(bench: Bench, how: How, repeat: number): Promise<number> {
  const { endpoint, namespace: root } = bench.server;
  const namespace = `${root}/failover-${how}-${repeat}`;
  const session = { op: 'open', endpoint, namespace, ttl: DETECT_TTL, heartbeat: 'lease', quietMs: 100 } as const;
  const master = new FleetProcess('master', nodeFleet('ours-mirror'));
  const watchers = new FleetProcess('watchers', nodeFleet('ours-mirror'));
  try {
    await master.order({ ...session, n: 1 });
    await watchers.order({ ...session, n: FAILOVER_WATCHERS });
    await watchers.order({ op: 'changes', count: 4, intervalMs: INTERVAL_MS });
    const changes = watchers.order({ op: 'changes', count: CHANGES, intervalMs: INTERVAL_MS });
    await new Promise((resolve) => setTimeout(resolve, AFTER_MS));
    if (how === 'killed') master.kill();
    else await master.close();
    const { latenciesMs, checksums } = await changes;
    if (checksums.length !== 1) bench.faults.push(`failover, ${how}: ${checksums.length} different final lists`);
    return Math.max(...latenciesMs);
  } finally {
    master.kill();
    await watchers.close();
  }
}

export async function failover(bench: Bench): Promise<void> {
  const repeats = bench.options.rounds ?? (bench.options.quick ? 1 : REPEATS);
  for (let repeat = 0; repeat < repeats; repeat += 1) {
    for (const how of ['killed', 'closed'] as const) {
      bench.say(`failover: master ${how}, ${repeat + 1} of ${repeats}`);
      const ms = await gapMs(bench, how, repeat);
      const key = { measurement: 'failover', of: NAMES.mirror, n: FAILOVER_WATCHERS, metric: `gap, master ${how}` };
      bench.samples.add(key, 'ms', ms);
    }
  }
}
