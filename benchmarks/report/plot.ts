/** Pure: plots, coloured by the page's own variables so that they follow light and dark. */
import { escapeHtml, number, tick } from './format.ts';

export interface Series {
  readonly name: string;
  /** The page's variable `--c1`, `--c2` … */
  readonly color: number;
  readonly points: readonly (readonly [x: number, y: number])[];
}

/** About what it is shown at: a phone shrinks it a little, nothing makes it larger. */
const WIDTH = 480;
const HEIGHT = 300;
const LEFT = 58;
const RIGHT = 8;
const TOP = 14;
const BOTTOM = 52;
/** Of a tick's label, with what should stay free beside it. */
const LABEL_WIDTH = 36;

/** 1, 10, 100 … around all of these: two at least. */
function decades(values: readonly number[]): number[] {
  const low = Math.floor(Math.log10(Math.min(...values)));
  const high = Math.max(low + 1, Math.ceil(Math.log10(Math.max(...values))));
  return Array.from({ length: high - low + 1 }, (_, i) => 10 ** (low + i));
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

function line({ name, color, points }: Series, x: Scale, y: Scale): string {
  const at = points.map(([px, py]) => [x(px).toFixed(1), y(py).toFixed(1)] as const);
  const dots = points.map(([px, py], i) => {
    const [cx, cy] = at[i] ?? [];
    return (
      `<circle cx="${cx}" cy="${cy}" r="3.5" style="fill:var(--c${color})">` +
      `<title>${escapeHtml(name)}, ${number(px)}: ${number(py)}</title></circle>`
    );
  });
  return `<polyline points="${at.map((pair) => pair.join(',')).join(' ')}" style="stroke:var(--c${color})"/>${dots.join('')}`;
}

/** Those whose labels do not run into each other; the last is always among them. */
function apart(ticks: readonly number[], x: Scale): number[] {
  const kept: number[] = [];
  for (const value of [...ticks].reverse()) {
    const next = kept[0];
    if (next === undefined || x(next) - x(value) >= LABEL_WIDTH) kept.unshift(value);
  }
  return kept;
}

/** Lines over logarithmic axes. What is zero lies on the floor. */
export function lines(title: string, xLabel: string, yLabel: string, all: readonly Series[]): string {
  const series = all.filter(({ points }) => points.length > 0);
  const xs = series.flatMap(({ points }) => points.map(([x]) => x));
  const ys = series.flatMap(({ points }) => points.map(([, y]) => y));
  const positive = ys.filter((y) => y > 0);
  if (positive.length === 0) return '';
  const yTicks = decades(positive);
  const xTicks = [...new Set(xs)].sort((a, b) => a - b);
  const x = logScale(Math.min(...xs), Math.max(...xs), LEFT + 10, WIDTH - RIGHT - 16);
  const y = logScale(yTicks[0] ?? 1, yTicks.at(-1) ?? 10, HEIGHT - BOTTOM, TOP);
  const grid = yTicks.map((value) => {
    const at = y(value).toFixed(1);
    const label = `<text x="${LEFT - 6}" y="${(y(value) + 5).toFixed(1)}" text-anchor="end">${tick(value)}</text>`;
    return `<line class="grid" x1="${LEFT}" x2="${WIDTH - RIGHT}" y1="${at}" y2="${at}"/>${label}`;
  });
  const labels = apart(xTicks, x).map(
    (value) =>
      `<text x="${x(value).toFixed(1)}" y="${HEIGHT - BOTTOM + 20}" text-anchor="middle">${tick(value)}</text>`,
  );
  const axis = `<text class="label" x="${(LEFT + WIDTH) / 2}" y="${HEIGHT - 8}" text-anchor="middle">${escapeHtml(xLabel)}</text>`;
  const caption = `${yLabel}; both axes logarithmic${ys.includes(0) ? ', zero lies on the lowest line' : ''}`;
  const drawn = [...grid, ...labels, axis, ...series.map((one) => line(one, x, y))].join('');
  const svg = `<svg viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img" aria-label="${escapeHtml(title)}">${drawn}</svg>`;
  return figure(title, caption, svg + legend(series));
}

export interface Row {
  readonly name: string;
  readonly color: number;
  /** In one row, from the left: the median solid, the others as marks. */
  readonly p50: number;
  readonly marks: readonly { readonly label: string; readonly value: number }[];
}

/** A bar for each median, with marks for what lies further out. */
export function rows(title: string, unit: string, all: readonly Row[]): string {
  if (all.length === 0) return '';
  const most = Math.max(...all.flatMap(({ p50, marks }) => [p50, ...marks.map(({ value }) => value)]));
  const percent = (value: number) => `${((100 * value) / most).toFixed(2)}%`;
  const bars = all.map(({ name, color, p50, marks }) => {
    const words = [
      marks.length === 0 ? number(p50) : `p50 ${number(p50)}`,
      ...marks.map(({ label, value }) => `${label} ${number(value)}`),
    ].join(' · ');
    const last = marks.at(-1)?.value ?? p50;
    const further = marks.map(({ value }) => `<i class="mark" style="left:${percent(value)}"></i>`).join('');
    return (
      `<div class="row" style="--color:var(--c${color})">${escapeHtml(name)} <small>${escapeHtml(words)} ${escapeHtml(unit)}</small>` +
      `<div class="track"><i class="median" style="width:${percent(p50)}"></i>` +
      `<i class="range" style="left:${percent(p50)};width:${percent(last - p50)}"></i>${further}</div></div>`
    );
  });
  const labels = [...new Set(all.flatMap(({ marks }) => marks.map(({ label }) => label)))].join(' and ');
  return figure(title, labels === '' ? unit : `${unit}; bar: p50, marks: ${labels}`, bars.join(''));
}

function figure(title: string, caption: string, body: string): string {
  return `<figure><h3>${escapeHtml(title)}</h3><p class="caption">${escapeHtml(caption)}</p>${body}</figure>`;
}
