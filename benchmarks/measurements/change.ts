/** One change, until every watcher's list has it. */
import { type Bench, checkAgreement, closeFleets, type Entrant, openFleets, profiled, rotated } from '../bench.ts';
import { CHANGE_N } from '../options.ts';

/**
 * More than what lies between two markers of a mirror, so that each change is a first one. A disk takes its time for each of the two
 * commits of a mirrored change: sooner, changes would wait for those before them.
 */
const INTERVAL_MS = { memory: 60, disk: 400 };
const CHANGES_A_ROUND = 20;
const WARM = 4;
/** At the size that a bar is about, so many changes that a p99 means something. */
const ROUNDS = { compared: 10, others: 1 };

function intervalOf({ options }: Bench): number {
  return options.fsync ? INTERVAL_MS.disk : INTERVAL_MS.memory;
}

async function round(bench: Bench, entrants: readonly Entrant[], n: number, which: number, count: number) {
  const intervalMs = intervalOf(bench);
  const checksums: (readonly string[])[] = [];
  for (const { contestant, fleet } of rotated(entrants, which)) {
    const answer = await fleet.order({ op: 'changes', count, intervalMs });
    const { p50, p99, p999 } = answer.watcherMs;
    const add = (metric: string, ...values: readonly number[]) =>
      bench.samples.add({ measurement: 'change', of: contestant.name, n, metric }, 'ms', ...values);
    add('until all have it', ...answer.latenciesMs);
    add('at a watcher, p50 of a round', p50);
    add('at a watcher, p99 of a round', p99);
    add('at a watcher, p99.9 of a round', p999);
    checksums.push(answer.checksums);
  }
  checkAgreement(bench, `change, ${n} clients`, checksums);
}

export async function change(bench: Bench): Promise<void> {
  const { options, contestants } = bench;
  const count = options.quick ? 4 : CHANGES_A_ROUND;
  for (const n of options.changeSizes) {
    const rounds = options.rounds ?? (options.quick ? 1 : n === CHANGE_N ? ROUNDS.compared : ROUNDS.others);
    bench.say(`change: ${n} clients, opening the fleets`);
    const watching = contestants.filter(({ isWatching, most }) => isWatching && n <= most);
    const entrants = await openFleets(bench, watching, n);
    try {
      for (const { fleet } of entrants) {
        await fleet.order({ op: 'storm', phase: 'join', spreadMs: 0 });
        await fleet.order({ op: 'changes', count: WARM, intervalMs: intervalOf(bench) });
      }
      await profiled(bench, entrants, `change-${n}`, async () => {
        for (let which = 0; which < rounds; which += 1) {
          bench.say(`change: ${n} clients, round ${which + 1} of ${rounds}`);
          await round(bench, entrants, n, which, count);
        }
      });
    } finally {
      await closeFleets(entrants);
    }
  }
}
