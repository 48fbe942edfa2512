/** Pure: plots as SVG, coloured by the page's own variables so that they follow light and dark. */
import { escapeHtml, number, tick } from './format.ts';

export interface Series {
  readonly name: string;
  /** The page's variable `--c1`, `--c2` … */
  readonly color: number;
  readonly points: readonly (readonly [x: number, y: number])[];
}

const WIDTH = 640;
const HEIGHT = 340;
const LEFT = 56;
const RIGHT = 12;
const TOP = 14;
const BOTTOM = 42;

/** 1, 10, 100 … that lie within, and the ends' decades. */
function decades(low: number, high: number): number[] {
  const found: number[] = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power += 1)
    found.push(10 ** power);
  return found;
}

type Scale = (value: number) => number;

function logScale(low: number, high: number, from: number, to: number): Scale {
  const span = Math.log(high) - Math.log(low) || 1;
  return (value) => from + ((Math.log(Math.max(value, low)) - Math.log(low)) / span) * (to - from);
}

function legend(series: readonly Series[]): string {
  const items = series.map(
    ({ name, color }) => `<span class="key"><i style="background:var(--c${color})"></i>${escapeHtml(name)}</span>`,
  );
  return `<div class="legend">${items.join('')}</div>`;
}

/** Lines over logarithmic axes. What is zero lies on the floor. */
export function lines(title: string, xLabel: string, yLabel: string, all: readonly Series[]): string {
  const series = all.filter(({ points }) => points.length > 0);
  const xs = series.flatMap(({ points }) => points.map(([x]) => x));
  const ys = series.flatMap(({ points }) => points.map(([, y]) => y)).filter((y) => y > 0);
  if (xs.length === 0) return '';
  const hasZero = series.some(({ points }) => points.some(([, py]) => py === 0));
  const yTicks = decades(Math.min(...ys, 1e9), Math.max(...ys, 1e-9)).filter(
    (y) => Number.isFinite(y) && ys.length > 0,
  );
  const xTicks = [...new Set(xs)].sort((a, b) => a - b);
  const x = logScale(Math.min(...xs), Math.max(...xs), LEFT + 8, WIDTH - RIGHT - 8);
  const y = logScale(yTicks[0] ?? 1, yTicks.at(-1) ?? 10, HEIGHT - BOTTOM, TOP);
  const grid = yTicks.map(
    (value) =>
      `<line class="grid" x1="${LEFT}" x2="${WIDTH - RIGHT}" y1="${y(value)}" y2="${y(value)}"/>` +
      `<text x="${LEFT - 6}" y="${y(value) + 4}" text-anchor="end">${tick(value)}</text>`,
  );
  const labels = xTicks.map(
    (value) => `<text x="${x(value)}" y="${HEIGHT - BOTTOM + 18}" text-anchor="middle">${tick(value)}</text>`,
  );
  const paths = series.map(({ name, color, points }) => {
    const at = points.map(([px, py]) => `${x(px).toFixed(1)},${y(py).toFixed(1)}`);
    const dots = points.map(
      ([px, py]) =>
        `<circle cx="${x(px).toFixed(1)}" cy="${y(py).toFixed(1)}" r="4" style="fill:var(--c${color})">` +
        `<title>${escapeHtml(name)}, ${number(px)}: ${number(py)}</title></circle>`,
    );
    return `<polyline points="${at.join(' ')}" style="stroke:var(--c${color})"/>${dots.join('')}`;
  });
  const axis = `<text class="label" x="${(LEFT + WIDTH) / 2}" y="${HEIGHT - 6}" text-anchor="middle">${escapeHtml(xLabel)}</text>`;
  return (
    figure(
      title,
      `${yLabel}, logarithmic axes${hasZero ? '; zero lies on the lowest line' : ''}`,
      `${grid.join('')}${labels.join('')}${axis}${paths.join('')}`,
      HEIGHT,
    ) + legend(series)
  );
}

export interface Row {
  readonly name: string;
  readonly color: number;
  /** In one row, from the left: the median solid, the others as marks. */
  readonly p50: number;
  readonly marks: readonly { readonly label: string; readonly value: number }[];
}

const ROW_HEIGHT = 46;

/** A bar for each median, with marks for what lies further out. */
export function rows(title: string, unit: string, all: readonly Row[]): string {
  if (all.length === 0) return '';
  const most = Math.max(...all.flatMap(({ p50, marks }) => [p50, ...marks.map(({ value }) => value)]));
  const x: Scale = (value) => (value / most) * (WIDTH - 90);
  const height = all.length * ROW_HEIGHT + 6;
  const bars = all.map(({ name, color, p50, marks }, i) => {
    const top = i * ROW_HEIGHT;
    const further = marks.map(
      ({ label, value }) =>
        `<line class="mark" x1="${x(value)}" x2="${x(value)}" y1="${top + 20}" y2="${top + 38}" style="stroke:var(--c${color})">` +
        `<title>${escapeHtml(label)}: ${number(value)} ${escapeHtml(unit)}</title></line>`,
    );
    const last = marks.at(-1)?.value ?? p50;
    const words = [`p50 ${number(p50)}`, ...marks.map(({ label, value }) => `${label} ${number(value)}`)].join(' · ');
    return (
      `<text x="0" y="${top + 14}">${escapeHtml(name)} <tspan class="label">${escapeHtml(words)} ${escapeHtml(unit)}</tspan></text>` +
      `<rect x="0" y="${top + 22}" width="${Math.max(1, x(p50))}" height="14" rx="3" style="fill:var(--c${color})"/>` +
      `<line class="range" x1="${x(p50)}" x2="${x(last)}" y1="${top + 29}" y2="${top + 29}" style="stroke:var(--c${color})"/>${further.join('')}`
    );
  });
  return figure(title, 'bar: p50; marks further out as named', bars.join(''), height);
}

function figure(title: string, caption: string, body: string, height: number): string {
  return (
    `<h3>${escapeHtml(title)}</h3><p class="caption">${escapeHtml(caption)}</p>` +
    `<svg viewBox="0 0 ${WIDTH} ${height}" role="img" aria-label="${escapeHtml(title)}">${body}</svg>`
  );
}
