/** Pure: what was promised, against what was measured. */
import { NAMES } from './contestants.ts';
import { elasticBars } from './elastic/bars.ts';
import { DETECT_TTL } from './measurements/detect.ts';
import { FAILOVER_WATCHERS } from './measurements/failover.ts';
import { refreshName } from './measurements/refresh.ts';
import { CHANGE_N } from './options.ts';
import { number } from './report/format.ts';
import type { Key, Samples } from './samples.ts';
import { exponent } from './statistics.ts';

export interface Bar {
  readonly what: string;
  readonly bar: string;
  readonly measured: string;
  /** Undefined: not measured in this run. */
  readonly met: boolean | undefined;
}

const { mirror: MIRROR, direct: DIRECT, etcd3: ETCD3, go: GO, zookeeper: ZOOKEEPER } = NAMES;

type Metric = Omit<Key, 'of'>;

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

function stormBars(samples: Samples): Bar[] {
  const at = (metric: string): Metric => ({ measurement: 'storm', n: STORM_N, metric });
  const most = 'messages a watcher, most';
  const own = (what: string, metric: string, atMost: number) =>
    absolute(samples, `${STORM_N} ${what}: messages a watcher`, { ...at(metric), of: MIRROR }, atMost, 'messages');
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

function changeBars(samples: Samples): Bar[] {
  const at: Metric = { measurement: 'change', n: CHANGE_N, metric: 'until all have it' };
  const what = (via: string) => `one change until all ${CHANGE_N} watchers have it, p50, ${via}`;
  return [
    ratio(samples, what('direct'), at, DIRECT, ETCD3, 1.1),
    ratio(samples, what('mirror'), at, MIRROR, ETCD3, 1.3),
    ratio(samples, what('mirror'), at, MIRROR, ZOOKEEPER, 0.5),
  ];
}

/** The exponent of what all hear together, over the sizes measured. */
function growth(samples: Samples, of: string, bar: string, isMet: (b: number) => boolean): Bar {
  const metric = 'messages a period, all';
  const points = samples
    .sizes('refresh', of, metric)
    .map((n) => [n, samples.median({ measurement: 'refresh', of, n, metric }) ?? 0] as const);
  const what = `refresh, ${of}: messages grow as N to the`;
  const b = exponent(points);
  if (Number.isNaN(b)) return { what, bar, measured: 'not measured', met: undefined };
  return { what, bar, measured: b.toFixed(2), met: isMet(b) };
}

function refreshBars(samples: Samples): Bar[] {
  const mirror = refreshName(MIRROR, 'put');
  const metric = 'messages a period at a watcher';
  const n = samples.sizes('refresh', mirror, metric).at(-1) ?? 0;
  const key = { measurement: 'refresh', of: mirror, n };
  return [
    absolute(
      samples,
      `refresh: messages a period at each of ${n} mirrored watchers`,
      { ...key, metric },
      0,
      'messages',
    ),
    absolute(
      samples,
      'refresh: messages a period at the master',
      { ...key, metric: 'messages a period at the master' },
      n * 1.05,
      'messages',
    ),
    growth(samples, mirror, '1.0', (b) => b < 1.1),
    growth(samples, refreshName(DIRECT, 'put'), '2 (N²)', (b) => b > 1.8),
  ];
}

const KEYS = 10_000;

function registerBars(samples: Samples): Bar[] {
  const at: Metric = { measurement: 'register', n: KEYS, metric: 'rate' };
  const own = samples.median({ ...at, of: DIRECT });
  const byHand = samples.median({ ...at, of: ETCD3 });
  const what = `${number(KEYS)} registrations in one process: rate`;
  const bar = `≥ 0.8 × ${ETCD3}`;
  const rate: Bar =
    own === undefined || byHand === undefined
      ? { what, bar, measured: 'not measured', met: undefined }
      : {
          what,
          bar,
          measured: `${number(own / byHand)} × (${number(own)} against ${number(byHand)} keys/s)`,
          met: own >= 0.8 * byHand,
        };
  const keepalives = { ...at, of: DIRECT, metric: 'keepalives a ttl' };
  // Four periods make a ttl; one more may begin within the time looked at.
  return [
    absolute(samples, `${number(KEYS)} registrations in one process: keepalives a ttl`, keepalives, 4.5, 'keepalives'),
    rate,
  ];
}

function timeBars(samples: Samples): Bar[] {
  const gap = (how: string) => ({
    measurement: 'failover',
    of: MIRROR,
    n: FAILOVER_WATCHERS,
    metric: `gap, master ${how}`,
  });
  const detect = { measurement: 'detect', of: 'all', n: DETECT_TTL, metric: 'SIGKILL to gone' };
  return [
    absolute(samples, `SIGKILL to gone from every list, ttl ${DETECT_TTL}, p99`, detect, 3_500, 'ms', 0.99),
    absolute(
      samples,
      'master killed: the mirror tells nothing for, longest',
      gap('killed'),
      (DETECT_TTL + 1) * 1_000,
      'ms',
      1,
    ),
    absolute(samples, 'master closed: the mirror tells nothing for, longest', gap('closed'), 200, 'ms', 1),
  ];
}

const CHILDREN = 100_000;
/** A change's own size: an event with its key, or a marker that tells of one name, and their frames. */
const CHANGE_BYTES = 1_000;

function sizeBars(samples: Samples): Bar[] {
  const at = (metric: string): Metric => ({ measurement: 'size', n: CHILDREN, metric });
  const what = `${number(CHILDREN)} children`;
  return [
    ratio(samples, `${what}: first listing, direct`, at('first listing'), DIRECT, ETCD3, 2),
    ratio(samples, `${what}: first listing, mirror`, at('first listing'), MIRROR, ETCD3, 2),
    absolute(
      samples,
      `${what}: bytes read for a change, direct`,
      { ...at('bytes a change'), of: DIRECT },
      CHANGE_BYTES,
      'bytes',
    ),
    absolute(
      samples,
      `${what}: bytes read for a change, mirror`,
      { ...at('bytes a change'), of: MIRROR },
      2 * CHANGE_BYTES,
      'bytes',
    ),
  ];
}

export function bars(samples: Samples): readonly Bar[] {
  return [
    ...refreshBars(samples),
    ...stormBars(samples),
    ...changeBars(samples),
    ...registerBars(samples),
    ...timeBars(samples),
    ...sizeBars(samples),
    ...elasticBars(samples),
  ];
}

/** For a terminal. */
export function table(all: readonly Bar[]): string {
  const rows = all.filter(({ met }) => met !== undefined);
  if (rows.length === 0) return 'no bar is about what was measured';
  const verdict = ({ met }: Bar) => (met ? 'met' : 'NOT MET');
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
