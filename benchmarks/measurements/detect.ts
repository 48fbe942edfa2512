/** From SIGKILL to gone from every list. */
import type { Bench } from '../bench.ts';
import { NAMES, nodeFleet } from '../contestants.ts';
import { FleetProcess } from '../fleet-process.ts';

/** Seconds: the least that etcd grants. */
export const DETECT_TTL = 2;
const KILLS = 30;
const WATCHERS = 3;
/** At the same time: few enough to leave the processes the CPU they need. */
const LANES = 3;

async function kill(bench: Bench, which: number, isMaster: boolean): Promise<number> {
  const { endpoint, namespace: root } = bench.server;
  const namespace = `${root}/detect-${which}`;
  const session = { op: 'open', endpoint, namespace, ttl: DETECT_TTL, heartbeat: 'lease', quietMs: 100 } as const;
  const victim = new FleetProcess('victim', nodeFleet('ours-mirror'));
  const watchers = new FleetProcess('watchers', nodeFleet('ours-mirror'));
  try {
    // The first to come is master.
    const open = [() => victim.order({ ...session, n: 1 }), () => watchers.order({ ...session, n: WATCHERS })];
    for (const one of isMaster ? open : open.reverse()) await one();
    const bothJoined = Promise.all([victim.order({ op: 'await', size: 1 }), watchers.order({ op: 'await', size: 1 })]);
    await victim.order({ op: 'probe', joins: true });
    await bothJoined;
    // Anywhere between two keepalives.
    await new Promise((resolve) => setTimeout(resolve, Math.random() * DETECT_TTL * 500));
    const gone = watchers.order({ op: 'await', size: 0 });
    const killedNs = process.hrtime.bigint();
    victim.kill();
    const { atNs } = await gone;
    return Number(BigInt(atNs) - killedNs) / 1e6;
  } finally {
    victim.kill();
    await watchers.close();
  }
}

export async function detect(bench: Bench): Promise<void> {
  const kills = bench.options.rounds ?? (bench.options.quick ? 2 : KILLS);
  let next = 0;
  const lane = async () => {
    while (next < kills) {
      const which = next;
      next += 1;
      const isMaster = which % 2 === 1;
      bench.say(`detect: kill ${which + 1} of ${kills}`);
      const ms = await kill(bench, which, isMaster);
      const of = isMaster ? `${NAMES.mirror}, its master killed` : NAMES.mirror;
      for (const one of [of, 'all']) {
        bench.samples.add({ measurement: 'detect', of: one, n: DETECT_TTL, metric: 'SIGKILL to gone' }, 'ms', ms);
      }
    }
  };
  await Promise.all(Array.from({ length: Math.min(LANES, kills) }, lane));
}
