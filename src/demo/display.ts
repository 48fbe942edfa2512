import type { Facts, Note, Step } from './facts.ts';
import { type Size, screen } from './screen.ts';
import { COLOURS, NO_COLOURS, wrap } from './text.ts';

const FRAME_PERIOD_MS = 100;
const STATUS_PERIOD_MS = 5_000;
const PLAIN_WIDTH = 100;
/** Of a terminal that does not tell. */
const DEFAULT_SIZE: Size = { columns: 80, rows: 24 };

const ENTER = '\x1b[?1049h\x1b[?25l\x1b[?7l';
const LEAVE = '\x1b[?7h\x1b[?25h\x1b[?1049l';
/** Terminals that know it show what lies between at once; others pass it over. */
const BEGIN_FRAME = '\x1b[?2026h\x1b[H';
const END_FRAME = '\x1b[J\x1b[?2026l';

export interface Display {
  step(step: Step): void;
  note(note: Note): void;
  /** Ends it and leaves the terminal as it was. Idempotent. */
  close(): void;
}

/** A screen of its own, drawn anew in place; it goes in the end, and what was there before comes back. */
export function liveDisplay(output: NodeJS.WriteStream, facts: () => Facts): Display {
  const style = process.env.NO_COLOR ? NO_COLOURS : COLOURS;
  let shown = '';
  let isOpen = true;
  const draw = () => {
    const { columns = DEFAULT_SIZE.columns, rows = DEFAULT_SIZE.rows } = output;
    const lines = screen(facts(), { columns, rows }, style);
    const frame = lines.map((line) => `${line}\x1b[K`).join('\r\n');
    if (frame !== shown) output.write(BEGIN_FRAME + frame + END_FRAME);
    shown = frame;
  };
  const redraw = () => {
    shown = '';
    draw();
  };
  const close = () => {
    if (!isOpen) return;
    isOpen = false;
    clearInterval(timer);
    output.off('resize', redraw);
    process.off('SIGCONT', resume);
    process.off('exit', close);
    output.write(LEAVE);
  };
  const resume = () => {
    output.write(ENTER);
    redraw();
  };
  output.write(ENTER);
  const timer = setInterval(draw, FRAME_PERIOD_MS);
  output.on('resize', redraw);
  process.on('SIGCONT', resume);
  // However the process ends, the terminal is usable then.
  process.on('exit', close);
  draw();
  return { step: draw, note: () => {}, close };
}

function statusLine({ listed, served, failed, master, atMaster, atMirrored, atDirect }: Facts): string {
  const rate = (perSecond: number) => `${perSecond.toFixed(1)}/s`;
  return [
    `listed: ${listed.join(' ') || 'nobody'}`,
    `${served} served, ${failed} failed`,
    `master: ${master ?? 'none'}`,
    `messages: master ${rate(atMaster.perSecond)}, ${atMirrored.listeners} mirrored ${rate(atMirrored.perSecond)}, ` +
      `${atDirect.listeners} direct ${rate(atDirect.perSecond)}`,
  ].join(' | ');
}

/** For pipes and files: a line for each thing that happens, and one now and then that says how it stands. */
export function plainDisplay(output: NodeJS.WriteStream, facts: () => Facts): Display {
  const line = (atMs: number, text: string) =>
    output.write(`${`${(atMs / 1_000).toFixed(1)} s`.padStart(7)}  ${text}\n`);
  const timer = setInterval(() => {
    const now = facts();
    if (now.listed.length > 0) line(now.elapsedMs, statusLine(now));
  }, STATUS_PERIOD_MS);
  return {
    step: ({ number, of, title, text }) => {
      const { elapsedMs } = facts();
      output.write('\n');
      line(elapsedMs, `${number}/${of}  ${title}`);
      for (const part of wrap(text, PLAIN_WIDTH)) line(elapsedMs, `     ${part}`);
    },
    note: ({ atMs, text }) => line(atMs, text),
    close: () => clearInterval(timer),
  };
}
