import { type Crash, FEW, MANY, type Outcome } from './script.ts';
import { REFRESH_PERIOD_MS } from './tasks.ts';
import { grouped } from './text.ts';

const LABEL_WIDTH = 24;
const COLUMN_WIDTH = 13;
const AT_SCALE = 150;

const seconds = (ms: number) => `${(ms / 1_000).toFixed(1)} s`;

/** What has been seen, in words and figures. Pure. */
export function summary(outcome: Outcome): string[] {
  const { served, failed, crashes } = outcome;
  const explained = crashes.reduce((sum, crash) => sum + crash.failed, 0);
  return [
    '',
    'What you saw',
    '',
    `Requests: ${grouped(served)} served, ${grouped(failed)} failed, ${
      explained === failed
        ? 'all between a SIGKILL and its detection'
        : `${failed - explained} of them for other reasons`
    }`,
    ...crashes.flatMap(crashLines),
    `  restart with SIGTERM: ${outcome.failedInRestart} failed; rolling all ${MANY}: ${outcome.failedInRoll} failed`,
    '',
    `Messages in ${seconds(outcome.countedMs)}, in which each service wrote its key every ${seconds(REFRESH_PERIOD_MS)}:`,
    ...messageTable(outcome),
    `  At ${AT_SCALE} services and ${AT_SCALE} watchers: ${AT_SCALE} a period, all to the master, not ${grouped(AT_SCALE ** 2)}.`,
    '',
    'Heartbeats of the default kind, ‘lease’, make no messages at all. The mirror',
    'then pays when many come and go at once; a few watchers do as well without it.',
    '',
  ];
}

function crashLines({ name, detectedMs, failed, sentAfterwards, successor }: Crash): string[] {
  const what = `off the lists in ${seconds(detectedMs)}; ${failed} failed, ${sentAfterwards} sent to it since`;
  if (!successor) return [`  SIGKILL of ${name}: ${what}`];
  const { name: next, afterMs } = successor;
  return [
    `  SIGKILL of ${name}: ${what}`,
    `    it was the mirror’s master; ${next} was the next after ${seconds(afterMs)}`,
  ];
}

function messageTable({ few, many }: Outcome): string[] {
  const row = (label: string, ...cells: readonly string[]) =>
    `  ${label.padEnd(LABEL_WIDTH)}${cells.map((cell) => cell.padStart(COLUMN_WIDTH)).join('')}`.trimEnd();
  const figures = (label: string, kind: 'master' | 'mirrored' | 'direct', law: string) =>
    row(label, grouped(few[kind]), grouped(many[kind]), growth(few[kind], many[kind]), law);
  return [
    row('', `${FEW} of each`, `${MANY} of each`, 'growth', ''),
    figures('the mirror’s master', 'master', 'N'),
    figures('all mirrored watchers', 'mirrored', 'nothing'),
    figures('all direct watchers', 'direct', 'N²'),
  ];
}

function growth(before: number, after: number): string {
  if (before === 0) return after === 0 ? '-' : 'from 0';
  return `× ${(after / before).toFixed(1)}`;
}
