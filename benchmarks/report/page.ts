/** Pure: the report, one page that needs nothing else. */
import { type Bar, bars } from '../bars.ts';
import { NAMES } from '../contestants.ts';
import { DETECT_TTL } from '../measurements/detect.ts';
import { type Heartbeat, refreshName } from '../measurements/refresh.ts';
import type { Results } from '../results.ts';
import { Samples } from '../samples.ts';
import { median, quantile } from '../statistics.ts';
import { escapeHtml, number } from './format.ts';
import { lines, type Row, rows, type Series } from './plot.ts';
import { STYLE } from './style.ts';

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

const colorOf = (name: string) => COLORS.get(name) ?? 1;

function stormPlots(samples: Samples): string {
  const names = Object.values(NAMES);
  const plot = (title: string, yLabel: string, metric: string) =>
    lines(title, 'clients, each a watcher', yLabel, over(samples, 'storm', metric, names, colorOf));
  return [
    plot('All join at once: messages a watcher', 'messages', 'join: messages a watcher'),
    plot('All join at once: until all have seen all', 'milliseconds', 'join: time'),
    plot('All leave at once: until all have seen all', 'milliseconds', 'leave: time'),
    plot('All join at once: CPU of clients and servers', 'milliseconds of CPU', 'join: CPU of all'),
    plot('Rolling restart over 3 s: messages a watcher', 'messages', 'rolling restart: messages a watcher'),
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
    { label: 'p99', value: quantile(values, 0.99) },
    ...(values.length >= 1_000 ? [{ label: 'p99.9', value: quantile(values, 0.999) }] : []),
  ];
  return { name, color: colorOf(name), p50: median(values), marks };
}

function rowsOf(samples: Samples, measurement: string, metric: string): Row[] {
  return samples
    .all()
    .filter((sample) => sample.measurement === measurement && sample.metric === metric)
    .map(({ of, values }) => row(of, values));
}

function sizePlots(samples: Samples): string {
  const names = [NAMES.mirror, NAMES.direct, NAMES.etcd3, 'etcd-ephemeral, once'];
  const color = (name: string) => names.indexOf(name) + 1;
  const plot = (title: string, yLabel: string, metric: string) =>
    lines(title, 'children', yLabel, over(samples, 'size', metric, names, color));
  return [
    plot('First listing of a large directory', 'milliseconds', 'first listing'),
    plot('One change of a large directory: bytes read', 'bytes', 'bytes a change'),
  ].join('');
}

const VERDICTS = new Map([
  [true, '<b class="met">met</b>'],
  [false, '<b class="missed">not met</b>'],
]);

function barsTable(all: readonly Bar[]): string {
  const cells = all.map(({ what, bar, measured, met }) => {
    const verdict = met === undefined ? 'not measured' : VERDICTS.get(met);
    return `<tr><td>${escapeHtml(what)}</td><td>${escapeHtml(bar)}</td><td>${escapeHtml(measured)}</td><td>${verdict}</td></tr>`;
  });
  const head = '<tr><th>what</th><th>bar</th><th>measured (median unless said)</th><th></th></tr>';
  return `<div class="wide"><table>${head}${cells.join('')}</table></div>`;
}

function samplesTable(samples: Samples, measurement: string): string {
  const cells = samples
    .all()
    .filter((sample) => sample.measurement === measurement)
    .map(({ of, n, metric, unit, values }) => {
      const figures = [median(values), quantile(values, 0.99), Math.min(...values), Math.max(...values)];
      const shown = figures.map((value) => `<td class="n">${number(value)}</td>`).join('');
      return `<tr><td>${escapeHtml(of)}</td><td class="n">${number(n)}</td><td>${escapeHtml(metric)}</td>${shown}<td>${escapeHtml(unit)}</td><td class="n">${values.length}</td></tr>`;
    });
  const head =
    '<tr><th>of</th><th>N</th><th>what</th><th>median</th><th>p99</th><th>least</th><th>most</th><th>unit</th><th>samples</th></tr>';
  return `<details><summary>All figures of ${escapeHtml(measurement)}</summary><div class="wide"><table>${head}${cells.join('')}</table></div></details>`;
}

function machine({ environment: env, missing, options }: Results): string {
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
    section('Heartbeats', 'refresh', refreshPlots(samples)),
    section('Storms', 'storm', stormPlots(samples)),
    section(
      'One change',
      'change',
      rows('One change, until every watcher has it', 'ms', rowsOf(samples, 'change', 'until all have it')),
    ),
    section('Many registrations in one process', 'register', ''),
    section(
      'Detection',
      'detect',
      rows(
        `From SIGKILL to gone from every list, ttl ${DETECT_TTL} s`,
        'ms',
        rowsOf(samples, 'detect', 'SIGKILL to gone'),
      ),
    ),
    section('Failover of the mirror', 'failover', ''),
    section('Large directories', 'size', sizePlots(samples)),
    section('Start', 'start', ''),
    `<section><h2>Where and with what</h2>${machine(results)}</section>`,
  ];
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark"><title>etcd-ephemeral: benchmark</title><style>${STYLE}</style></head>
<body><main>${body.join('\n')}</main></body></html>
`;
}
