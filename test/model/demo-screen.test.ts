import { PassThrough } from 'node:stream';
import test from 'ava';
import { liveDisplay } from '../../src/demo/display.ts';
import type { Facts, ServiceFacts } from '../../src/demo/facts.ts';
import { servicePicture } from '../../src/demo/picture.ts';
import { Rate } from '../../src/demo/rate.ts';
import { screen } from '../../src/demo/screen.ts';
import type { Outcome } from '../../src/demo/script.ts';
import { summary } from '../../src/demo/summary.ts';
import { COLOURS, NO_COLOURS, wrap } from '../../src/demo/text.ts';

function service(index: number, over: Partial<ServiceFacts> = {}): ServiceFacts {
  return {
    name: `web-${index}`,
    pid: 4_194_300 + index,
    heartbeat: 'lease',
    process: 'up',
    isListed: true,
    isMaster: index === 1,
    traffic: { sent: 12_345, served: 12_345, failed: 0 },
    heard: 12_345,
    ...over,
  };
}

const FACTS: Facts = {
  elapsedMs: 61_000,
  etcd: 'etcd 3.5.16, started for this demo',
  step: { number: 4, of: 7, title: 'A service crashes', text: 'word '.repeat(60).trim() },
  services: [1, 2, 3, 4, 5, 6].map((index) => service(index)),
  listed: ['web-1', 'web-2', 'web-3', 'web-4', 'web-5', 'web-6'],
  isStale: false,
  served: 123_456,
  failed: 12,
  master: 'web-1',
  atMaster: { listeners: 1, total: 1_234, perSecond: 7.5 },
  atMirrored: { listeners: 6, total: 12, perSecond: 0 },
  atDirect: { listeners: 6, total: 12_345, perSecond: 45 },
  notes: [
    { atMs: 1_000, text: 'the first', tone: 'plain' },
    { atMs: 60_000, text: 'the last but one', tone: 'bad' },
    { atMs: 61_000, text: 'the last', tone: 'good' },
  ],
};

// biome-ignore lint/complexity/useRegexLiterals: the escape would be a control character
const CODES = new RegExp('\\x1b\\[[0-9;]*m', 'g');

test('the screen fits any terminal, and at 80 × 24 shows everything and the newest notes', (t) => {
  for (const [columns, rows] of [
    [80, 24],
    [200, 60],
    [40, 10],
    [1, 1],
  ] as const) {
    const lines = screen(FACTS, { columns, rows }, COLOURS).map((line) => line.replace(CODES, ''));
    t.true(lines.length <= rows, `${columns} × ${rows}: ${lines.length} lines`);
    for (const line of lines) t.true(line.length <= Math.max(2, columns), `${columns} columns: ${line}`);
  }
  const small = screen(FACTS, { columns: 80, rows: 24 }, NO_COLOURS).join('\n');
  for (const { name } of FACTS.services) t.true(small.includes(name));
  t.regex(small, /6 direct watchers +45\.0\/s +12,345 +█+/);
  t.regex(small, /the last but one\n.*the last$/);
  t.notRegex(small, /the first/);
});

test('the one state that hurts is red: killed and still on the list', (t) => {
  const rowOf = (over: Partial<ServiceFacts>) =>
    screen({ ...FACTS, services: [service(2, over)] }, { columns: 80, rows: 24 }, COLOURS).find((line) =>
      line.includes('web-2'),
    );
  t.true(rowOf({ process: 'killed' })?.includes(COLOURS.red('yes   ')));
  t.true(rowOf({})?.includes(COLOURS.green('yes   ')));
  t.true(rowOf({ process: 'killed', isListed: false })?.includes(COLOURS.dim('no    ')));
});

test('the display draws in place, again after a resize, only what has changed, and leaves the terminal as it was', (t) => {
  const output = Object.assign(new PassThrough(), { columns: 80, rows: 24 }) as unknown as NodeJS.WriteStream;
  const written = () => String((output as unknown as PassThrough).read() ?? '');
  let facts = FACTS;
  const display = liveDisplay(
    output,
    servicePicture(() => facts),
  );
  const step = FACTS.step as NonNullable<Facts['step']>;
  const first = written();
  t.true(first.startsWith('\x1b[?1049h\x1b[?25l'), 'a screen of its own, without cursor');
  t.false(first.includes('\x1b[2J'), 'to clear it first would flicker');
  display.step(step);
  t.is(written(), '', 'nothing has changed');
  facts = { ...FACTS, failed: 13 };
  display.step(step);
  t.true(written().includes('13 failed'));
  output.rows = 30;
  output.emit('resize');
  t.true(written().includes('the first'), 'there is room for more');
  display.close();
  display.close();
  t.true(written().endsWith('\x1b[?7h\x1b[?25h\x1b[?1049l'));
});

test('a rate looks at the last few seconds only', (t) => {
  const rate = new Rate();
  t.is(rate.perSecond, 0);
  for (let ms = 0; ms <= 10_000; ms += 100) rate.add(ms, ms / 100);
  t.is(rate.perSecond, 10);
  for (let ms = 10_100; ms <= 13_000; ms += 100) rate.add(ms, 100);
  t.is(rate.perSecond, 0);
});

test('the summary fits 80 columns, and says when a request failed for another reason', (t) => {
  const crash = { name: 'web-3', detectedMs: 12_345, failed: 123, sentAfterwards: 0 };
  const outcome: Outcome = {
    countedMs: 4_800,
    few: { master: 18, mirrored: 0, direct: 54 },
    many: { master: 36, mirrored: 0, direct: 216 },
    crashes: [crash, { ...crash, successor: { name: 'web-1', afterMs: 2_100 } }],
    failedInRestart: 0,
    failedInRoll: 0,
    served: 12_345,
    failed: 246,
  };
  for (const line of summary(outcome)) t.true(line.length <= 80, line);
  t.regex(summary(outcome).join('\n'), /246 failed, all between a SIGKILL and its detection/);
  t.regex(summary(outcome).join('\n'), /direct watchers +54 +216 +× 4\.0 +N²/);
  t.regex(summary({ ...outcome, failed: 250 }).join('\n'), /250 failed, 4 of them for other reasons/);
});

test('text is broken between words', (t) => {
  t.deepEqual(wrap('one two three', 7), ['one two', 'three']);
  t.deepEqual(wrap('overlong a', 4), ['overlong', 'a']);
});
