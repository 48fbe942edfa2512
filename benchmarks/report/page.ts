/** Pure: the report, one page that needs nothing else. */
import { bars } from '../bars.ts';
import { NAMES } from '../contestants.ts';
import { DETECT_TTL } from '../measurements/detect.ts';
import { FAILOVER_WATCHERS } from '../measurements/failover.ts';
import { type Heartbeat, refreshName } from '../measurements/refresh.ts';
import { CHANGE_N } from '../options.ts';
import type { Results } from '../results.ts';
import { Samples } from '../samples.ts';
import { median, quantile } from '../statistics.ts';
import { escapeHtml } from './format.ts';
import { lines, type Row, rows, type Series } from './plot.ts';
import { STYLE } from './style.ts';
import { barsTable, comparison, type Line, samplesTable } from './tables.ts';

/** The same colour for the same one everywhere. */
const COLORS = new Map<string, number>(Object.values(NAMES).map((name, i) => [name, i + 1]));

function over(
  samples: Samples,
  measurement: string,
  metric: string,
  of: readonly string[],
  color: (name: string) => number,
): Series[] {
  return of.map((name) => ({
    name,
    color: color(name),
    points: samples
      .sizes(measurement, name, metric)
      .map((n) => [n, samples.median({ measurement, of: name, n, metric }) ?? 0] as const),
  }));
}

const plots = (all: string) => `<div class="plots">${all}</div>`;

const colorOf = (name: string) => COLORS.get(name) ?? 1;

function stormPlots(samples: Samples): string {
  const names = Object.values(NAMES);
  const largest = samples.sizes('storm', NAMES.mirror, 'rolling restart: messages a watcher').at(-1) ?? 0;
  const plot = (title: string, yLabel: string, metric: string) =>
    lines(title, 'clients, each a watcher', yLabel, over(samples, 'storm', metric, names, colorOf));
  return [
    plot('All join at once: messages a watcher', 'messages', 'join: messages a watcher'),
    plot('All join at once: until all have seen all', 'milliseconds', 'join: time'),
    plot('All leave at once: until all have seen all', 'milliseconds', 'leave: time'),
    plot('All join at once: CPU of clients and servers', 'milliseconds of CPU', 'join: CPU of all'),
    rows(
      `Rolling restart of ${largest} over 3 s: messages a watcher`,
      'messages',
      rowsOf(samples, 'storm', 'rolling restart: messages a watcher', largest),
    ),
  ].join('');
}

function refreshPlots(samples: Samples): string {
  const kinds: readonly (readonly [string, Heartbeat, number])[] = [
    [NAMES.mirror, 'put', 1],
    [NAMES.direct, 'put', 2],
    [NAMES.mirror, 'lease', 3],
    [NAMES.direct, 'lease', 4],
    [NAMES.moleculer, 'put', 7],
  ];
  const colors = new Map(kinds.map(([name, heartbeat, color]) => [refreshName(name, heartbeat), color]));
  const color = (name: string) => colors.get(name) ?? 1;
  // It is told nothing: it asks.
  const told = [...colors.keys()].filter((name) => name !== refreshName(NAMES.moleculer, 'put'));
  const plot = (title: string, yLabel: string, metric: string, names = [...colors.keys()]) =>
    lines(title, 'clients, each a watcher', yLabel, over(samples, 'refresh', metric, names, color));
  return [
    plot('Nothing changes: messages a period, all watchers together', 'messages', 'messages a period, all', told),
    plot('Nothing changes: bytes read a second, all watchers together', 'bytes', 'bytes a second, all watchers'),
    plot('Nothing changes: CPU of the servers a second', 'milliseconds of CPU', 'CPU of servers a second'),
  ].join('');
}

function row(name: string, values: readonly number[]): Row {
  const marks = [
    ...(values.length > 1 ? [{ label: 'p99', value: quantile(values, 0.99) }] : []),
    ...(values.length >= 1_000 ? [{ label: 'p99.9', value: quantile(values, 0.999) }] : []),
  ];
  return { name, color: colorOf(name), p50: median(values), marks };
}

/** In the order of the contestants, where they are such. */
function rowsOf(samples: Samples, measurement: string, metric: string, n: number): Row[] {
  const order = Object.values(NAMES) as string[];
  return samples
    .all()
    .filter((sample) => sample.measurement === measurement && sample.metric === metric && sample.n === n)
    .sort((a, b) => order.indexOf(a.of) - order.indexOf(b.of))
    .map(({ of, values }) => row(of, values));
}

function line(samples: Samples, measurement: string, n: number, what: string, metric: string, unit: string): Line {
  return { what, unit, of: (of) => samples.median({ measurement, of, n, metric }) };
}

const UNTIL_ALL = 'until all have it';

function changePlots(samples: Samples): string {
  const names = Object.values(NAMES);
  const sizes = [...new Set(names.flatMap((name) => samples.sizes('change', name, UNTIL_ALL)))].sort((a, b) => a - b);
  const plot = (title: string, q: number) => {
    const series = names.map((name) => ({
      name,
      color: colorOf(name),
      points: samples
        .sizes('change', name, UNTIL_ALL)
        .map((n) => [n, samples.quantile({ measurement: 'change', of: name, n, metric: UNTIL_ALL }, q) ?? 0] as const),
    }));
    return lines(title, 'watchers', 'milliseconds', series);
  };
  const inAll = (what: string, q: number): Line[] =>
    sizes.map((n) => ({
      what: `${n} watchers, ${what}`,
      unit: 'ms',
      of: (of) => samples.quantile({ measurement: 'change', of, n, metric: UNTIL_ALL }, q),
    }));
  const atOne = (what: string) =>
    sizes.map((n) => line(samples, 'change', n, `${n} watchers, ${what}`, `at a watcher, ${what} of a round`, 'ms'));
  return [
    '<div class="plots">',
    plot('One change until every watcher has it, p50', 0.5),
    plot('One change until every watcher has it, p99', 0.99),
    rows(`One change, until all ${CHANGE_N} watchers have it`, 'ms', rowsOf(samples, 'change', UNTIL_ALL, CHANGE_N)),
    '</div>',
    comparison('One change until every watcher has it', names, [...inAll('p50', 0.5), ...inAll('p99', 0.99)]),
    comparison('One change until a watcher has it', names, [...atOne('p50'), ...atOne('p99'), ...atOne('p99.9')]),
  ].join('');
}

function registerTables(samples: Samples): string {
  const names = [NAMES.direct, NAMES.etcd3];
  return samples
    .sizes('register', NAMES.direct, 'rate')
    .map((n) => {
      const of = (what: string, metric: string, unit: string) => line(samples, 'register', n, what, metric, unit);
      return comparison(`${n.toLocaleString('en')} keys of one process`, names, [
        of('registered', 'rate', 'keys/s'),
        of('CPU of the client, a key', 'CPU a key', 'µs'),
        of('heap, a key', 'heap a key', 'bytes'),
        of('keepalives a ttl', 'keepalives a ttl', ''),
        of('then written a ttl', 'bytes written a ttl', 'bytes'),
        of('then read a ttl', 'bytes read a ttl', 'bytes'),
        of('CPU of the client, a second', 'idle CPU a second', 'ms'),
      ]);
    })
    .join('');
}

const ONCE = 'etcd-ephemeral, once';

function sizePlots(samples: Samples): string {
  const names = [NAMES.mirror, NAMES.direct, NAMES.etcd3, ONCE];
  const color = (name: string) => names.indexOf(name) + 1;
  const plot = (title: string, yLabel: string, metric: string) =>
    lines(title, 'children', yLabel, over(samples, 'size', metric, names, color));
  const watches = samples.sizes('size', NAMES.direct, MANY('heap a watch')).at(-1) ?? 0;
  const many = (what: string, metric: string, unit: string) => line(samples, 'size', watches, what, MANY(metric), unit);
  return [
    '<div class="plots">',
    plot('First listing', 'milliseconds', 'first listing'),
    plot('Memory a child', 'bytes of heap', 'heap a child'),
    plot('One change: until it is there', 'milliseconds', 'one change'),
    plot('One change: bytes read', 'bytes', 'bytes a change'),
    '</div>',
    comparison(`${watches.toLocaleString('en')} small directories watched by one process`, names, [
      many('heap, a watch', 'heap a watch', 'bytes'),
      many('CPU of the client, a watch', 'CPU a watch', 'ms'),
      many('read, a watch', 'bytes read a watch', 'bytes'),
      many('until all first listings are there', 'until all first listings are there', 'ms'),
    ]),
  ].join('');
}

const MANY = (metric: string) => `many directories: ${metric}`;

function failoverRows(samples: Samples): string {
  const rowOf = (how: string): Row[] => {
    const key = { measurement: 'failover', of: NAMES.mirror, n: FAILOVER_WATCHERS, metric: `gap, master ${how}` };
    const values = samples.values(key);
    if (values.length === 0) return [];
    const marks = [{ label: 'longest', value: Math.max(...values) }];
    return [{ name: `master ${how}`, color: how === 'killed' ? 2 : 1, p50: median(values), marks }];
  };
  return rows('The mirror tells nothing for', 'ms', [...rowOf('killed'), ...rowOf('closed')]);
}

function startTable(samples: Samples): string {
  const of = (what: string, metric: string, unit: string) => line(samples, 'start', 1, what, metric, unit);
  return comparison(
    'A new process',
    [NAMES.mirror, NAMES.etcd3],
    [
      of('import', 'import', 'ms'),
      of('connect, until a first answer', 'connect', 'ms'),
      of('installed with all it needs', 'install size', 'bytes'),
      of('packages', 'packages', ''),
    ],
  );
}

function machine({ environment: env, missing, bounded = {}, seconds = {}, options }: Results): string {
  const took = Object.entries(seconds)
    .map(([name, s]) => `${name} ${s} s`)
    .join(', ');
  const fsync = env.fsync === null ? 'as the cluster has it' : env.fsync ? 'on' : 'off';
  const facts: readonly (readonly [string, string])[] = [
    ['Commit', `${env.commit}${env.dirty ? ', with changes since' : ''}`],
    ['Date', env.date],
    ['Machine', `${env.cpu}, ${env.cores} cores, ${env.memoryGiB} GiB, Linux ${env.kernel}`],
    ['Node', env.node],
    ['etcd', `${env.etcd}, fsync ${fsync}`],
    ...Object.entries(env.packages),
    ['Clients', options.sizes.join(', ')],
    ...Object.entries(missing).map(([name, how]) => [`Without ${name}`, how] as const),
    ...Object.entries(bounded),
    ...(took === '' ? [] : [['It took', took] as const]),
  ];
  return `<dl>${facts.map(([name, value]) => `<dt>${escapeHtml(name)}</dt><dd>${escapeHtml(value)}</dd>`).join('')}</dl>`;
}

const HOW = `Every client has a connection of its own, counted; a contestant's clients share one process, apart from the others'.
Sessions stand before the clock starts. Contestants take turns within each round. Latency is measured from when a change was due.
Server and clients run on one machine and share its cores, so CPU spent anywhere slows everything. After each step the final lists
of all clients are compared.`;

export function page(results: Results): string {
  const samples = Samples.from(results.samples);
  const section = (title: string, measurement: string, plots: string) =>
    samples.all().some((sample) => sample.measurement === measurement)
      ? `<section><h2>${escapeHtml(title)}</h2>${plots}${samplesTable(samples, measurement)}</section>`
      : '';
  const faults = results.faults.map((fault) => `<p class="missed">Wrong: ${escapeHtml(fault)}</p>`).join('');
  const body = [
    `<h1>etcd-ephemeral: benchmark</h1><p>${escapeHtml(HOW)}</p>${faults}`,
    `<section><h2>The bars</h2>${barsTable(bars(samples))}</section>`,
    section('Heartbeats', 'refresh', plots(refreshPlots(samples))),
    section('Storms', 'storm', plots(stormPlots(samples))),
    section('One change', 'change', changePlots(samples)),
    section('Many registrations in one process', 'register', registerTables(samples)),
    section(
      'Detection',
      'detect',
      rows(
        `From SIGKILL to gone from every list, ttl ${DETECT_TTL} s`,
        'ms',
        rowsOf(samples, 'detect', 'SIGKILL to gone', DETECT_TTL).filter(({ name }) => name !== 'all'),
      ),
    ),
    section('Failover of the mirror', 'failover', failoverRows(samples)),
    section('Large directories', 'size', sizePlots(samples)),
    section('Start', 'start', startTable(samples)),
    `<section><h2>Where and with what</h2>${machine(results)}</section>`,
  ];
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark"><title>etcd-ephemeral: benchmark</title><style>${STYLE}</style></head>
<body><main>${body.join('\n')}</main></body></html>
`;
}
