/** Pure: the figures for the README, as Markdown. */
import { NAMES } from '../contestants.ts';
import { refreshName } from '../measurements/refresh.ts';
import { CHANGE_N } from '../options.ts';
import type { Results } from '../results.ts';
import { Samples } from '../samples.ts';
import { number } from './format.ts';

function cell(value: number | undefined, unit = ''): string {
  return value === undefined ? '-' : `${number(value)}${unit}`;
}

/** A column a contestant, of those who took part. */
function table(
  head: string,
  names: readonly string[],
  lines: readonly (readonly [string, (name: string) => string])[],
): string {
  const heads = `| ${[head, ...names].join(' | ')} |\n|${'---|'.repeat(names.length + 1)}`;
  return [heads, ...lines.map(([what, of]) => `| ${[what, ...names.map(of)].join(' | ')} |`)].join('\n');
}

export function figures(results: Results): string {
  const samples = Samples.from(results.samples);
  const { environment: env } = results;
  const n = samples.sizes('storm', NAMES.mirror, 'join: time').at(-1);
  const at = (measurement: string, metric: string, size: number) => (of: string) =>
    samples.median({ measurement, of, n: size, metric });
  const parts: string[] = [];
  if (n !== undefined) {
    const names = Object.values(NAMES).filter((of) => at('storm', 'join: time', n)(of) !== undefined);
    const line = (what: string, metric: string, unit: string) =>
      [what, (of: string) => cell(at('storm', metric, n)(of), unit)] as const;
    const change = (q: number) => (of: string) =>
      cell(samples.quantile({ measurement: 'change', of, n: CHANGE_N, metric: 'until all have it' }, q), ' ms');
    parts.push(
      table(`${n} clients, each registers and watches`, names, [
        line('all join at once: messages a watcher', 'join: messages a watcher', ''),
        line('… until all have seen all', 'join: time', ' ms'),
        line('… CPU of clients and servers', 'join: CPU of all', ' ms'),
        line('all leave at once: messages a watcher', 'leave: messages a watcher', ''),
        line('… until all have seen all', 'leave: time', ' ms'),
        line('rolling restart over 3 s: messages a watcher', 'rolling restart: messages a watcher', ''),
        [`one change until all ${CHANGE_N} watchers have it, p50`, change(0.5)],
        ['… p99', change(0.99)],
      ]),
    );
  }
  const put = (name: string) => refreshName(name, 'put');
  const sizes = samples.sizes('refresh', put(NAMES.mirror), 'messages a period, all');
  if (sizes.length > 0) {
    parts.push(
      table('put-heartbeats: messages a period, all watchers', sizes.map(String), [
        ...[NAMES.direct, NAMES.mirror].map(
          (name) =>
            [name, (size: string) => cell(at('refresh', 'messages a period, all', Number(size))(put(name)))] as const,
        ),
      ]),
    );
  }
  const where = `${env.cpu}, ${env.cores} cores, Node ${env.node}, etcd ${env.etcd}${env.fsync === false ? ' without fsync' : ''}, commit ${env.commit}`;
  return `${[...parts, `Medians; ${where}. Server and clients share the machine.`].join('\n\n')}\n`;
}
