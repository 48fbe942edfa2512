/** Pure: the figures for the README, as Markdown. */
import { NAMES } from '../contestants.ts';
import { DETECT_TTL } from '../measurements/detect.ts';
import { FAILOVER_WATCHERS } from '../measurements/failover.ts';
import { refreshName } from '../measurements/refresh.ts';
import { CHANGE_N } from '../options.ts';
import type { Results } from '../results.ts';
import { type Key, Samples } from '../samples.ts';
import { number, quantity } from './format.ts';

type Line = readonly [what: string, of: (name: string) => string];
const NOT_MEASURED = '-';

/** A column a contestant, of those who have any figure; a row a line that has one. */
function table(head: string, names: readonly string[], lines: readonly Line[]): string[] {
  const columns = names.filter((name) => lines.some(([, of]) => of(name) !== NOT_MEASURED));
  const rows = lines.filter(([, of]) => columns.some((name) => of(name) !== NOT_MEASURED));
  if (rows.length === 0) return [];
  const heads = `| ${[head, ...columns].join(' | ')} |\n|${'---|'.repeat(columns.length + 1)}`;
  return [[heads, ...rows.map(([what, of]) => `| ${[what, ...columns.map(of)].join(' | ')} |`)].join('\n')];
}

class Figures {
  readonly #samples: Samples;

  constructor(samples: Samples) {
    this.#samples = samples;
  }

  together(): string[] {
    const n = this.#samples.sizes('storm', NAMES.mirror, 'join: time').at(-1) ?? 0;
    const storm = (what: string, metric: string, unit: string) => this.#line(what, 'storm', n, metric, unit);
    const change = (what: string, metric: string, q = 0.5) => this.#line(what, 'change', CHANGE_N, metric, 'ms', q);
    return table(`${n} clients, each registers and watches`, Object.values(NAMES), [
      storm('all join at once: messages a watcher', 'join: messages a watcher', ''),
      storm('… until all have seen all', 'join: time', 'ms'),
      storm('… CPU of clients and servers', 'join: CPU of all', 'ms'),
      storm('all leave at once: messages a watcher', 'leave: messages a watcher', ''),
      storm('… until all have seen all', 'leave: time', 'ms'),
      storm('rolling restart over 3 s: messages a watcher', 'rolling restart: messages a watcher', ''),
      change(`one change until all ${CHANGE_N} watchers have it, p50`, 'until all have it'),
      change('… p99', 'until all have it', 0.99),
      change('… until a watcher has it, p99.9', 'at a watcher, p99.9 of a round'),
    ]);
  }

  heartbeats(): string[] {
    const metric = 'messages a period, all';
    const put = (name: string) => refreshName(name, 'put');
    const sizes = this.#samples.sizes('refresh', put(NAMES.mirror), metric);
    const line = (name: string): Line => [
      name,
      (n) => this.#cell({ measurement: 'refresh', of: put(name), n: Number(n), metric }, ''),
    ];
    const head = 'put-heartbeats: messages a period, all watchers';
    return table(head, sizes.map(String), [line(NAMES.direct), line(NAMES.mirror)]);
  }

  process(): string[] {
    const keys = this.#samples.sizes('register', NAMES.direct, 'rate').at(-1) ?? 0;
    const children = this.#samples.sizes('size', NAMES.direct, 'first listing').at(-1) ?? 0;
    const register = (what: string, metric: string, unit: string) => this.#line(what, 'register', keys, metric, unit);
    const size = (what: string, metric: string, unit: string) => this.#line(what, 'size', children, metric, unit);
    const start = (what: string, metric: string, unit: string) => this.#line(what, 'start', 1, metric, unit);
    const heapAWatch = 'many directories: heap a watch';
    const watches = this.#samples.sizes('size', NAMES.direct, heapAWatch).at(-1) ?? 0;
    return table(
      'one process',
      [NAMES.mirror, NAMES.direct, NAMES.etcd3],
      [
        register(`${number(keys)} registrations: rate`, 'rate', 'keys/s'),
        register('… keepalives a ttl, all together', 'keepalives a ttl', ''),
        register('… bytes written a ttl, all together', 'bytes written a ttl', 'bytes'),
        register('… bytes read a ttl, all together', 'bytes read a ttl', 'bytes'),
        register('… heap a registration', 'heap a key', 'bytes'),
        size(`${number(children)} children: first listing`, 'first listing', 'ms'),
        size('… heap a child', 'heap a child', 'bytes'),
        size('… bytes read for one change', 'bytes a change', 'bytes'),
        this.#line(`${number(watches)} directories watched: heap a watch`, 'size', watches, heapAWatch, 'bytes'),
        start('import', 'import', 'ms'),
        start('connect', 'connect', 'ms'),
        start('installed, with all it needs', 'install size', 'bytes'),
      ],
    );
  }

  failures(): string[] {
    const detect = { measurement: 'detect', of: 'all', n: DETECT_TTL, metric: 'SIGKILL to gone' };
    const gap = (how: string) => ({
      measurement: 'failover',
      of: NAMES.mirror,
      n: FAILOVER_WATCHERS,
      metric: `gap, master ${how}`,
    });
    const line = (what: string, key: Key): Line => [
      what,
      (column) => this.#cell(key, 'ms', column === 'median' ? 0.5 : 1),
    ];
    return table(
      `ttl ${DETECT_TTL} s`,
      ['median', 'longest'],
      [
        line('a process is killed, until it is gone from every list', detect),
        line('the mirror’s master is killed: no news for', gap('killed')),
        line('the mirror’s master closes: no news for', gap('closed')),
      ],
    );
  }

  #cell(key: Key, unit: string, q = 0.5): string {
    const value = this.#samples.quantile(key, q);
    return value === undefined ? NOT_MEASURED : quantity(value, unit);
  }

  #line(what: string, measurement: string, n: number, metric: string, unit: string, q = 0.5): Line {
    return [what, (of) => this.#cell({ measurement, of, n, metric }, unit, q)];
  }
}

/** `file`: the name of the results that they are from. */
export function figures(results: Results, file: string): string {
  const all = new Figures(Samples.from(results.samples));
  const { environment: env, bounded = {} } = results;
  const where = `${env.cpu}, ${env.cores} cores, Node ${env.node}, etcd ${env.etcd}${env.fsync === false ? ' without fsync' : ''}`;
  const about =
    `Medians unless said; ${where}, commit ${env.commit}: \`benchmarks/results/${file}\`. Servers and clients share the machine.` +
    Object.entries(bounded)
      .map(([name, why]) => ` ${name}: ${why}.`)
      .join('');
  return `${[...all.together(), ...all.heartbeats(), ...all.process(), ...all.failures(), about].join('\n\n')}\n`;
}
