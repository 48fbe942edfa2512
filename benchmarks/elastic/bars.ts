/** Pure: the elastic cluster's bars. Each step may take what it takes by hand in the same run, and a little more. */
import type { Bar } from '../bars.ts';
import { number } from '../report/format.ts';
import type { Samples } from '../samples.ts';
import { APART, BY_HAND, NET, OURS, STEPS } from './steps.ts';

const MORE_MS = 100;

export function elasticBars(samples: Samples): Bar[] {
  const at = (of: string, metric: string) => samples.median({ measurement: 'elastic', of, n: 1, metric });
  return STEPS.map((step) => {
    const what = `elastic cluster: ${step}`;
    const bar = `≤ by hand + ${MORE_MS} ms, elections and backups apart`;
    const [own, byHand] = [at(OURS, `${step}, ${NET}`), at(BY_HAND, `${step}, ${NET}`)];
    if (own === undefined || byHand === undefined) return { what, bar, measured: 'not measured', met: undefined };
    const [ownApart, handApart] = [at(OURS, `${step}, ${APART}`) ?? 0, at(BY_HAND, `${step}, ${APART}`) ?? 0];
    const measured = `${number(own)} ms${apart(ownApart)}, against ${number(byHand)} ms${apart(handApart)}`;
    return { what, bar, measured, met: own <= byHand + MORE_MS };
  });
}

function apart(ms: number): string {
  return ms > 0 ? ` (and ${number(ms)} ms apart)` : '';
}
