import test from 'ava';
import { sleep } from '../../src/core/clock.ts';
import { ManualClock } from '../../src/memory/manual-clock.ts';

test('timers run in the order of their time, each at its own time, and of one time in the order they were set', async (t) => {
  const clock = new ManualClock();
  const ran: string[] = [];
  const set = (name: string, ms: number) => clock.setTimeout(() => ran.push(`${name}@${clock.now()}`), ms);
  set('c', 2_000);
  set('a', 500);
  set('b', 500);
  set('d', 2_001);
  set('cleared', 600).clear();
  await clock.advance(2);
  t.deepEqual(ran, ['a@500', 'b@500', 'c@2000']);
  t.is(clock.now(), 2_000);
});

test('what follows from a timer has settled before the next one runs', async (t) => {
  const clock = new ManualClock();
  const ran: string[] = [];
  const work = async () => {
    await sleep(clock, 100);
    for (let i = 0; i < 50; i++) await Promise.resolve();
    await new Promise((resolve) => setImmediate(resolve));
    ran.push(`first@${clock.now()}`);
    await sleep(clock, 0);
    ran.push(`second@${clock.now()}`);
  };
  void work();
  clock.setTimeout(() => ran.push('other'), 101);
  await clock.advance(1);
  t.deepEqual(ran, ['first@100', 'second@100', 'other']);
});

test('two advances at the same time come one after the other', async (t) => {
  const clock = new ManualClock();
  const ran: number[] = [];
  const tick = () => {
    ran.push(clock.now());
    clock.setTimeout(tick, 1_000);
  };
  tick();
  await Promise.all([clock.advance(1.5), clock.advance(1.5)]);
  t.deepEqual(ran, [0, 1_000, 2_000, 3_000]);
  t.is(clock.now(), 3_000);
});

test('a loop of timers that lets no time pass is an error, not a hang', async (t) => {
  const clock = new ManualClock();
  const again = () => {
    for (let i = 0; i < 1_000; i++) clock.setTimeout(() => undefined, 0);
    clock.setTimeout(again, 0);
  };
  again();
  await t.throwsAsync(clock.advance(1), { message: /without end/ });
});

test('chance depends on the seed alone and spreads over [0, 1)', (t) => {
  const draw = (seed: number) => {
    const clock = new ManualClock(seed);
    return Array.from({ length: 1_000 }, () => clock.random());
  };
  t.deepEqual(draw(7), draw(7));
  t.notDeepEqual(draw(7), draw(8));
  const mean = draw(7).reduce((sum, x) => sum + x) / 1_000;
  t.true(draw(7).every((x) => x >= 0 && x < 1) && Math.abs(mean - 0.5) < 0.05);
});
