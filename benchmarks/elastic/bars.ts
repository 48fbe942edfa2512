/** Pure: the elastic cluster's bars. Each step may take what it takes by hand in the same run, and a little more. */
import type { Bar } from '../bars.ts';
import { number } from '../report/format.ts';
import type { Samples } from '../samples.ts';
import { BACKUP, BY_HAND, OURS, STEPS } from './steps.ts';

const MORE_MS = 100;

export function elasticBars(samples: Samples): Bar[] {
  const at = (of: string, metric: string) => samples.median({ measurement: 'elastic', of, n: 1, metric });
  const backupMs = at(OURS, BACKUP) ?? 0;
  return STEPS.map((step) => {
    const what = `elastic cluster: ${step}`;
    const bar = `≤ by hand + ${MORE_MS} ms, backups apart`;
    const [own, byHand] = [at(OURS, step), at(BY_HAND, step)];
    if (own === undefined || byHand === undefined) return { what, bar, measured: 'not measured', met: undefined };
    const apart = (at(OURS, `${step}: backups`) ?? 0) * backupMs;
    const without = apart > 0 ? ` without ${number(apart)} ms of backups` : '';
    const measured = `${number(own - apart)} ms${without}, against ${number(byHand)} ms`;
    return { what, bar, measured, met: own - apart <= byHand + MORE_MS };
  });
}
