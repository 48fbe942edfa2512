import test from 'ava';
import { sleep, systemClock, systemClockFrom, systemClockOrigin } from '../../src/core/clock.ts';

const HOUR_MS = 3_600_000;
/** The uptime is given in whole seconds, of which one may be rounding. */
const GRAIN_MS = 2_000;

test.serial(
  'the clock counts the time for which the machine was suspended, in which the monotonic one stands still (R5)',
  (t) => {
    const { uptimeMs, monotonicMs } = systemClockOrigin();
    // As many hours have passed since by the uptime, and none by the monotonic clock.
    const suspended = systemClockFrom({ uptimeMs: uptimeMs - HOUR_MS, monotonicMs });
    const ahead = suspended.now() - systemClock().now();
    t.true(ahead <= HOUR_MS && ahead >= HOUR_MS - GRAIN_MS, `${ahead} ms`);
  },
);

test.serial('clocks of one origin tell the same time, as those of two threads do', (t) => {
  const other = systemClockFrom(systemClockOrigin());
  const [before, between, after] = [systemClock().now(), other.now(), systemClock().now()];
  t.true(before <= between && between <= after);
});

test.serial('the clock is not moved by setting the wall clock, neither are its timers (R5)', async (t) => {
  const clock = systemClock();
  const real = Date.now;
  t.teardown(() => {
    Date.now = real;
  });
  for (const shiftMs of [HOUR_MS, -HOUR_MS]) {
    const before = clock.now();
    Date.now = () => real() + shiftMs;
    await sleep(clock, 10);
    const passed = clock.now() - before;
    t.true(passed >= 9 && passed < HOUR_MS / 2, `${passed} ms`);
  }
});
