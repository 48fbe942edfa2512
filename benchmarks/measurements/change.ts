/** One change, until every watcher's list has it. */
import { type Bench, checkAgreement, closeFleets, openFleets, profiled, rotated } from '../bench.ts';

export const CHANGE_N = 150;
/** More than what lies between two markers of a mirror, so that each change is a first one. */
const INTERVAL_MS = 100;
const CHANGES_A_ROUND = 20;

export async function change(bench: Bench): Promise<void> {
  const { options, contestants, samples } = bench;
  const rounds = options.rounds ?? (options.quick ? 1 : 15);
  const count = options.quick ? 4 : CHANGES_A_ROUND;
  for (const n of options.quick ? options.sizes : [CHANGE_N]) {
    bench.say(`change: ${n} clients, opening the fleets`);
    const entrants = await openFleets(bench, contestants, n);
    try {
      for (const { fleet } of entrants) {
        await fleet.order({ op: 'storm', phase: 'join', spreadMs: 0 });
        await fleet.order({ op: 'changes', count, intervalMs: INTERVAL_MS });
      }
      await profiled(bench, entrants, `change-${n}`, async () => {
        for (let round = 0; round < rounds; round += 1) {
          bench.say(`change: ${n} clients, round ${round + 1} of ${rounds}`);
          const checksums: (readonly string[])[] = [];
          for (const { contestant, fleet } of rotated(entrants, round)) {
            const answer = await fleet.order({ op: 'changes', count, intervalMs: INTERVAL_MS });
            const key = { measurement: 'change', of: contestant.name, n, metric: 'until all have it' };
            samples.add(key, 'ms', ...answer.latenciesMs);
            checksums.push(answer.checksums);
          }
          checkAgreement(bench, `change, ${n} clients`, checksums);
        }
      });
    } finally {
      await closeFleets(entrants);
    }
  }
}
