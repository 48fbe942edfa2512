import { type Crash, FEW, MANY, type Outcome } from './script.ts';
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
    `Requests: ${grouped(served)} served, ${grouped(failed)} failed; ${
      explained === failed
        ? 'those only between a SIGKILL and its detection.'
        : `${failed - explained} of them at other times than between a SIGKILL and its detection.`
    }`,
    ...crashes.flatMap(crashLines),
    `  restart with SIGTERM: ${outcome.failedInRestart} failed; rolling all ${MANY}: ${outcome.failedInRoll} failed`,
    '',
    `Messages for heartbeats in ${seconds(outcome.countedMs)} (each service writes its key every 0.8 s):`,
    ...messageTable(outcome),
    `  With ${AT_SCALE} services and ${AT_SCALE} watchers: ${AT_SCALE} a period, all at the master, instead of ${grouped(AT_SCALE ** 2)}.`,
    '  Heartbeats of the default kind, ‘lease’, make no messages at all: then the mirror pays when many come and go',
    '  at once, and few direct watchers (via: ‘direct’) are as well off without it.',
    '',
  ];
}

function crashLines({ name, detectedMs, failed, sentAfterwards, successor }: Crash): string[] {
  const role = successor ? ', the mirror’s master' : '';
  return [
    `  SIGKILL of ${name}${role}: off every list after ${seconds(detectedMs)}; ${failed} failed until then, ${sentAfterwards} sent to it since`,
    ...(successor ? [`    ${successor.name} was master after ${seconds(successor.afterMs)}`] : []),
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
