import type { Note, Step } from './facts.ts';
import type { Size } from './screen.ts';
import { COLOURS, NO_COLOURS, type Style, wrap } from './text.ts';

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

/** What a display shows, as it is at the moment of the call. */
export interface Picture {
  elapsedMs(): number;
  screen(size: Size, style: Style): string[];
  /** How it stands, in a line; undefined while there is nothing to tell. */
  statusLine(): string | undefined;
}

export interface Display {
  step(step: Step): void;
  note(note: Note): void;
  /** Ends it and leaves the terminal as it was. Idempotent. */
  close(): void;
}

/** A screen of its own, drawn anew in place; it goes in the end, and what was there before comes back. */
export function liveDisplay(output: NodeJS.WriteStream, picture: Picture): Display {
  const style = process.env.NO_COLOR ? NO_COLOURS : COLOURS;
  let shown = '';
  let isOpen = true;
  const draw = () => {
    const { columns = DEFAULT_SIZE.columns, rows = DEFAULT_SIZE.rows } = output;
    const lines = picture.screen({ columns, rows }, style);
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

/** For pipes and files: a line for each thing that happens, and one now and then that says how it stands. */
export function plainDisplay(output: NodeJS.WriteStream, picture: Picture): Display {
  const line = (atMs: number, text: string) =>
    output.write(`${`${(atMs / 1_000).toFixed(1)} s`.padStart(7)}  ${text}\n`);
  const timer = setInterval(() => {
    const status = picture.statusLine();
    if (status !== undefined) line(picture.elapsedMs(), status);
  }, STATUS_PERIOD_MS);
  return {
    step: ({ number, of, title, text }) => {
      const elapsedMs = picture.elapsedMs();
      output.write('\n');
      line(elapsedMs, `${number}/${of}  ${title}`);
      for (const part of wrap(text, PLAIN_WIDTH)) line(elapsedMs, `     ${part}`);
    },
    note: ({ atMs, text }) => line(atMs, text),
    close: () => clearInterval(timer),
  };
}
