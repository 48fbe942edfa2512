/** Pure: figures for people. */

export function number(value: number): string {
  if (!Number.isFinite(value)) return String(value);
  const size = Math.abs(value);
  if (size === 0 || Number.isInteger(value)) return value.toLocaleString('en');
  if (size < 0.01) return value.toPrecision(1);
  if (size < 10) return value.toFixed(2);
  return value.toLocaleString('en', { maximumFractionDigits: size < 100 ? 1 : 0 });
}

/** With its unit: bytes by the thousand and million where they are many. */
export function quantity(value: number, unit: string): string {
  if (unit === 'bytes' && value >= 1e6) return `${number(Math.round(value / 1e4) / 100)} MB`;
  if (unit === 'bytes' && value >= 1e4) return `${number(Math.round(value / 1e2) / 10)} kB`;
  return unit === '' ? number(value) : `${number(value)} ${unit}`;
}

/** Short enough for an axis: 1,000 as 1k. */
export function tick(value: number): string {
  if (value >= 1e6) return `${value / 1e6}M`;
  return value >= 1e3 ? `${value / 1e3}k` : String(Number(value.toPrecision(3)));
}

export function escapeHtml(text: string): string {
  return text.replace(/[&<>"]/g, (char) => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' })[char] ?? char);
}
