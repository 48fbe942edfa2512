/** Pure: the live screen, as lines that fit into so many columns and rows. */
import type { Facts, Heard, Note, ProcessState, ServiceFacts, Tone } from './facts.ts';
import { clock, grouped, type Style, toWidth, wrap } from './text.ts';

/** Lines longer than that are hard to read. */
const MAX_WIDTH = 110;
/** What the longest text takes at 80 columns: the rest is not to jump. */
const TEXT_ROWS = 4;
const SERVICE_ROWS = 6;
const LABEL_WIDTH = 26;

export interface Size {
  readonly columns: number;
  readonly rows: number;
}

type Colour = (text: string) => string;

export function screen(facts: Facts, { columns, rows }: Size, style: Style): string[] {
  const width = Math.max(1, Math.min(columns, MAX_WIDTH) - 2);
  const fixed = [
    ...heading(facts, width, style),
    ...explanation(facts, width, style),
    '',
    ...table(facts, width, style),
    gateway(facts, width, style),
    '',
    ...messages(facts, width, style),
    '',
  ];
  const lines = [...fixed, ...notes(facts.notes, width, rows - fixed.length, style)];
  return lines.slice(0, Math.max(1, rows)).map((line) => (line === '' ? '' : ` ${line}`));
}

export function heading({ elapsedMs, etcd }: Pick<Facts, 'elapsedMs' | 'etcd'>, width: number, style: Style): string[] {
  const right = `${etcd}   ${clock(elapsedMs)} `;
  const left = toWidth(' etcd-ephemeral demo', Math.max(0, width - right.length));
  return [style.inverse(toWidth(left + right, width)), ''];
}

export function explanation({ step }: Pick<Facts, 'step'>, width: number, style: Style): string[] {
  const title = step ? `${step.number}/${step.of}  ${step.title}` : '';
  const text = step ? wrap(step.text, width) : [];
  const padding = Array.from({ length: Math.max(0, TEXT_ROWS - text.length) }, () => '');
  return [style.bold(style.cyan(toWidth(title, width))), ...text.map((line) => toWidth(line, width)), ...padding];
}

const TABLE_HEAD = 'SERVICE  PID      HEARTBEAT  PROCESS   LISTED   SERVED  FAILED   HEARD';

function table({ services }: Facts, width: number, style: Style): string[] {
  const rows = services.map((service) => serviceRow(service, width, style));
  const padding = Array.from({ length: Math.max(0, SERVICE_ROWS - rows.length) }, () => '');
  return [style.dim(toWidth(TABLE_HEAD, width)), ...rows, ...padding];
}

export const PROCESS: Record<
  ProcessState,
  { readonly word: string; readonly colour: 'green' | 'red' | 'yellow' | 'dim' }
> = {
  starting: { word: 'starting', colour: 'yellow' },
  up: { word: 'up', colour: 'green' },
  killed: { word: 'killed', colour: 'red' },
  draining: { word: 'draining', colour: 'yellow' },
  down: { word: 'ended', colour: 'dim' },
};

function serviceRow(service: ServiceFacts, width: number, style: Style): string {
  const { word, colour } = PROCESS[service.process];
  const { served, failed } = service.traffic;
  // The one state that hurts: on the list and dead.
  const listed: Colour = service.isListed ? (service.process === 'killed' ? style.red : style.green) : style.dim;
  return cells(width, [
    [service.name.padEnd(9), service.isMaster ? style.cyan : style.bold],
    [String(service.pid).padEnd(9)],
    [service.heartbeat.padEnd(11)],
    [word.padEnd(10), style[colour]],
    [(service.isListed ? 'yes' : 'no').padEnd(6), listed],
    [grouped(served).padStart(9)],
    [grouped(failed).padStart(8), failed > 0 ? style.red : undefined],
    [grouped(service.heard).padStart(8), service.isMaster ? style.cyan : undefined],
    [service.isMaster ? ' master' : '', style.cyan],
  ]);
}

/** Cut to `width` before it is coloured: codes have no width. */
export function cells(width: number, parts: readonly (readonly [text: string, colour?: Colour | undefined])[]): string {
  let left = width;
  return parts
    .map(([text, colour]) => {
      const cut = text.slice(0, left);
      left -= cut.length;
      return colour && cut !== '' ? colour(cut) : cut;
    })
    .join('');
}

function gateway({ served, failed, listed, isStale }: Facts, width: number, style: Style): string {
  return cells(width, [
    ['GATEWAY  ', style.dim],
    [`sends to the ${listed.length} listed: `],
    [`${grouped(served)} served`, style.green],
    [', '],
    [`${grouped(failed)} failed`, failed > 0 ? style.red : style.green],
    [isStale ? '  (the list is stale: etcd is out of reach)' : '', style.yellow],
  ]);
}

function messages({ master, atMaster, atMirrored, atDirect }: Facts, width: number, style: Style): string[] {
  const most = Math.max(atMaster.perSecond, atMirrored.perSecond, atDirect.perSecond, 1);
  const head = `${'MESSAGES HEARD BY'.padEnd(LABEL_WIDTH)}${'now'.padStart(8)}${'in all'.padStart(9)}`;
  const row = (label: string, { perSecond, total }: Heard, colour: Colour) => {
    const room = Math.max(0, width - LABEL_WIDTH - 8 - 9 - 2);
    const bar = '█'.repeat(Math.round((perSecond / most) * room));
    return cells(width, [
      [toWidth(label, LABEL_WIDTH)],
      [`${perSecond.toFixed(1)}/s`.padStart(8), colour],
      [grouped(total).padStart(9)],
      ['  '],
      [bar, colour],
    ]);
  };
  return [
    style.dim(toWidth(head, width)),
    row(`the master (${master ?? 'none now'})`, atMaster, style.cyan),
    row(`${atMirrored.listeners} mirrored watchers`, atMirrored, style.green),
    row(`${atDirect.listeners} direct watchers`, atDirect, style.red),
  ];
}

const TONES: Record<Tone, keyof Style | undefined> = {
  plain: undefined,
  good: 'green',
  bad: 'red',
  notice: 'cyan',
};

/** The newest that toWidth, the newest last. */
export function notes(all: readonly Note[], width: number, rows: number, style: Style): string[] {
  if (rows <= 0) return [];
  return all.slice(-rows).map(({ atMs, text, tone }) => {
    const colour = TONES[tone];
    return cells(width, [
      [`${clock(atMs)}  `, style.dim],
      [text, colour && style[colour]],
    ]);
  });
}
