/** How long the elastic cluster takes for each step, and how long the same step takes by hand. */
import { tmpdir } from 'node:os';
import type { Bench } from '../bench.ts';
import { bootByHand, largeByHand, smallByHand } from '../elastic/run-by-hand.ts';
import { bootOurs, largeOurs, smallOurs } from '../elastic/run-ours.ts';
import { APART, BY_HAND, NET, type Note, OURS } from '../elastic/steps.ts';

/** Each takes two minutes, most of them etcd's own waits: more by `--rounds`, so that a full run ends within a quarter of an hour. */
const ROUNDS = 1;
/** Of the first member, which take a second or two. */
const BOOTS = 5;

export async function elastic(bench: Bench): Promise<void> {
  const { options, samples } = bench;
  const tmp = process.env.TMPDIR;
  // Without a folder named, clusters have their data in memory.
  if (options.fsync) process.env.TMPDIR = tmpdir();
  const noteOf =
    (of: string): Note =>
    (step, ms, apartMs = 0) => {
      // Whoever wants the run to end does not wait for the steps to come; what was started is stopped on the way out.
      bench.stop.throwIfAborted();
      const key = { measurement: 'elastic', of, n: 1 };
      samples.add({ ...key, metric: step }, 'ms', ms);
      samples.add({ ...key, metric: `${step}, ${APART}` }, 'ms', apartMs);
      samples.add({ ...key, metric: `${step}, ${NET}` }, 'ms', ms - apartMs);
      const apart = apartMs > 0 ? `, ${Math.round(apartMs)} of them in elections and backups` : '';
      bench.say(`elastic: ${step}, ${of}: ${Math.round(ms)} ms${apart}`);
    };
  try {
    const rounds = options.rounds ?? ROUNDS;
    for (let round = 0; round < rounds; round++) {
      for (let boot = 0; boot < (options.quick ? 1 : BOOTS); boot++) {
        await bootByHand(noteOf(BY_HAND));
        await bootOurs(noteOf(OURS));
      }
      await smallByHand(noteOf(BY_HAND));
      await smallOurs(noteOf(OURS));
      // Five voters take a minute, most of it etcd's own waits, and show a tiny run nothing that three do not.
      if (options.quick) continue;
      await largeByHand(noteOf(BY_HAND));
      await largeOurs(noteOf(OURS));
    }
  } finally {
    if (tmp === undefined) delete process.env.TMPDIR;
    else process.env.TMPDIR = tmp;
  }
}
