/** Pure: figures as tables of HTML. */
import type { Bar } from '../bars.ts';
import type { Samples } from '../samples.ts';
import { median, quantile } from '../statistics.ts';
import { escapeHtml, number, quantity } from './format.ts';

const VERDICTS = new Map([
  [true, '<b class="met">met</b>'],
  [false, '<b class="missed">not met</b>'],
]);

/** On a narrow screen each row becomes a block of its own. */
export function barsTable(all: readonly Bar[]): string {
  const cells = all.map(({ what, bar, measured, met }) => {
    const verdict = met === undefined ? 'not measured' : VERDICTS.get(met);
    const known = met === undefined ? '' : escapeHtml(measured);
    return `<tr><td>${escapeHtml(what)}</td><td>${escapeHtml(bar)}</td><td>${known}</td><td class="verdict">${verdict}</td></tr>`;
  });
  const head = '<tr><th>what</th><th>bar</th><th>measured (median unless said)</th><th></th></tr>';
  return `<table class="stacked">${head}${cells.join('')}</table>`;
}

/** What of whom: a figure, or undefined. */
export interface Line {
  readonly what: string;
  readonly unit: string;
  readonly of: (name: string) => number | undefined;
}

/** A column for each of those who have any figure, a row for each line that has one. */
export function comparison(title: string, names: readonly string[], lines: readonly Line[]): string {
  const columns = names.filter((name) => lines.some(({ of }) => of(name) !== undefined));
  const rows = lines.filter(({ of }) => columns.some((name) => of(name) !== undefined));
  if (rows.length === 0) return '';
  const head = `<tr><th></th>${columns.map((name) => `<th class="n">${escapeHtml(name)}</th>`).join('')}</tr>`;
  const cells = rows.map(({ what, unit, of }) => {
    const shown = columns.map((name) => {
      const value = of(name);
      return `<td class="n">${value === undefined ? '' : escapeHtml(quantity(value, unit))}</td>`;
    });
    return `<tr><td>${escapeHtml(what)}</td>${shown.join('')}</tr>`;
  });
  return `<h3>${escapeHtml(title)}</h3><div class="wide"><table>${head}${cells.join('')}</table></div>`;
}

export function samplesTable(samples: Samples, measurement: string): string {
  const cells = samples
    .all()
    .filter((sample) => sample.measurement === measurement)
    .map(({ of, n, metric, unit, values }) => {
      const figures = [median(values), quantile(values, 0.99), Math.min(...values), Math.max(...values)];
      const shown = figures.map((value) => `<td class="n">${number(value)}</td>`).join('');
      return `<tr><td>${escapeHtml(of)}</td><td class="n">${number(n)}</td><td>${escapeHtml(metric)}</td>${shown}<td>${escapeHtml(unit)}</td><td class="n">${values.length}</td></tr>`;
    });
  const head =
    '<tr><th>of</th><th class="n">N</th><th>what</th><th class="n">median</th><th class="n">p99</th><th class="n">least</th><th class="n">most</th><th>unit</th><th class="n">samples</th></tr>';
  return `<details><summary>All figures of ${escapeHtml(measurement)}</summary><div class="wide"><table class="all">${head}${cells.join('')}</table></div></details>`;
}
