/** Pure: what was promised, against what was measured. */
import { DIRECT, ETCD3, GO, MIRROR, ZOOKEEPER } from './contestants.ts';
import type { Key, Samples } from './samples.ts';

export interface Bar {
  readonly what: string;
  readonly bar: string;
  readonly measured: string;
  /** Undefined: not measured in this run. */
  readonly met: boolean | undefined;
}

type Metric = Omit<Key, 'of'>;

function number(value: number): string {
  if (!Number.isFinite(value)) return String(value);
  if (value !== 0 && Math.abs(value) < 10) return value.toFixed(2);
  return value.toLocaleString('en', { maximumFractionDigits: Math.abs(value) < 100 ? 1 : 0 });
}

/** A median against another one's in the same run. */
function ratio(
  samples: Samples,
  what: string,
  metric: Metric,
  of: string,
  to: string,
  atMost: number,
  unit = 'ms',
): Bar {
  const own = samples.median({ ...metric, of });
  const other = samples.median({ ...metric, of: to });
  const bar = `≤ ${atMost} × ${to}`;
  if (own === undefined || other === undefined) return { what, bar, measured: 'not measured', met: undefined };
  const measured = `${number(own / other)} × (${number(own)} against ${number(other)} ${unit})`;
  return { what, bar, measured, met: own <= atMost * other };
}

function absolute(samples: Samples, what: string, key: Key, atMost: number, unit: string, q = 0.5): Bar {
  const value = samples.quantile(key, q);
  const bar = `≤ ${number(atMost)} ${unit}`;
  if (value === undefined) return { what, bar, measured: 'not measured', met: undefined };
  return { what, bar, measured: `${number(value)} ${unit}`, met: value <= atMost };
}

const STORM_N = 400;
const SPREAD_N = 400;

function stormBars(samples: Samples): Bar[] {
  const at = (metric: string, n = STORM_N): Metric => ({ measurement: 'storm', n, metric });
  const most = 'messages a watcher, most';
  const own = (what: string, metric: string, atMost: number) =>
    absolute(
      samples,
      `${STORM_N} ${what}: messages a watcher`,
      { ...at(metric, SPREAD_N), of: MIRROR },
      atMost,
      'messages',
    );
  const against = (what: string, metric: string, to: string, atMost: number) =>
    ratio(samples, `${STORM_N} ${what}`, at(metric), MIRROR, to, atMost);
  return [
    own('join at once', `join: ${most}`, 8),
    own('leave at once', `leave: ${most}`, 8),
    own('join over 3 s', `join, spread: ${most}`, 65),
    own('leave over 3 s', `leave, spread: ${most}`, 65),
    against('join: until all have seen all', 'join: time', ETCD3, 0.4),
    against('leave: until all have seen all', 'leave: time', ETCD3, 0.2),
    against('join: until all have seen all', 'join: time', GO, 1),
    against('leave: until all have seen all', 'leave: time', GO, 1),
    against('join: CPU of all together', 'join: CPU of all', ETCD3, 0.3),
    against('leave: CPU of all together', 'leave: CPU of all', ETCD3, 0.3),
    against('join: until all have seen all (an aim)', 'join: time', ZOOKEEPER, 1),
    against('leave: until all have seen all (an aim)', 'leave: time', ZOOKEEPER, 1),
  ];
}

const CHANGE_N = 150;

function changeBars(samples: Samples): Bar[] {
  const at: Metric = { measurement: 'change', n: CHANGE_N, metric: 'until all have it' };
  const what = (via: string) => `one change until all ${CHANGE_N} watchers have it, p50, ${via}`;
  return [
    ratio(samples, what('direct'), at, DIRECT, ETCD3, 1.1),
    ratio(samples, what('mirror'), at, MIRROR, ETCD3, 1.3),
    ratio(samples, what('mirror'), at, MIRROR, ZOOKEEPER, 0.5),
  ];
}

export function bars(samples: Samples): readonly Bar[] {
  return [...stormBars(samples), ...changeBars(samples)];
}

/** For a terminal. */
export function table(rows: readonly Bar[]): string {
  const verdict = ({ met }: Bar) => (met === undefined ? '-' : met ? 'met' : 'NOT MET');
  const cells = [
    ['what', 'bar', 'measured', ''],
    ...rows.map((row) => [row.what, row.bar, row.measured, verdict(row)]),
  ];
  const widths = [0, 1, 2].map((column) => Math.max(...cells.map((row) => (row[column] ?? '').length)));
  return cells
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}
