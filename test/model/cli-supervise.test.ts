import { EventEmitter } from 'node:events';
import test, { type ExecutionContext } from 'ava';
import { supervise } from '../../src/cli/supervise.ts';
import { until } from '../support/wait.ts';

/** A child that is there until it is told to exit, and everything that happens, in order. */
function setUp(t: ExecutionContext, drainMs = 0) {
  const log: string[] = [];
  const signals = new EventEmitter();
  let exit: (code: number) => void = () => {};
  const announcement = { resolve: () => {}, reject: (_: Error) => {} };
  const exitCode = supervise({
    child: {
      exited: new Promise((resolve) => {
        exit = resolve;
      }),
      signal: (name) => log.push(name),
    },
    signals,
    drainMs,
    announce: (signal) =>
      new Promise((resolve, reject) => {
        announcement.resolve = resolve;
        announcement.reject = reject;
        signal.addEventListener('abort', () => {
          log.push('not announced any more');
          reject(signal.reason);
        });
      }),
    withdraw: async () => {
      log.push('withdrawn');
    },
    onFailure: (error) => log.push(`failed: ${error instanceof Error ? error.message : error}`),
  });
  t.teardown(() => exit(0));
  return { log, signals, exitCode, announcement, exit: (code: number) => exit(code) };
}

const HOUR_MS = 3_600_000;

test('the child’s exit withdraws the registration, and its code is the code', async (t) => {
  const { log, exitCode, exit, announcement, signals } = setUp(t);
  announcement.resolve();
  exit(7);
  t.is(await exitCode, 7);
  t.true(log.includes('withdrawn'));
  t.deepEqual(signals.eventNames(), []);
});

test('a child that ends before it is ready is never announced', async (t) => {
  const { log, exitCode, exit } = setUp(t);
  exit(3);
  t.is(await exitCode, 3);
  t.is(log[0], 'not announced any more');
});

test('a signal is passed on after the registration is withdrawn', async (t) => {
  const { log, signals, announcement } = setUp(t);
  announcement.resolve();
  signals.emit('SIGTERM');
  await until(() => log.includes('SIGTERM'), 'the signal');
  t.deepEqual(log.slice(-2), ['withdrawn', 'SIGTERM']);
});

test('a drain holds the signal back until a second one comes, which alone is passed on', async (t) => {
  const { log, signals, announcement, exitCode, exit } = setUp(t, HOUR_MS);
  announcement.resolve();
  await Promise.resolve();
  signals.emit('SIGTERM');
  await until(() => log.includes('withdrawn'), 'the withdrawal');
  t.false(log.includes('SIGTERM'));
  signals.emit('SIGINT');
  t.is(log.at(-1), 'SIGINT');
  exit(0);
  t.is(await exitCode, 0);
  t.false(log.includes('SIGTERM'));
});

test('what was never announced is not drained', async (t) => {
  const { log, signals } = setUp(t, HOUR_MS);
  signals.emit('SIGINT');
  await until(() => log.includes('SIGINT'), 'the signal');
  t.is(log[0], 'not announced any more');
});

test('other signals are passed on at once and change nothing', (t) => {
  const { log, signals } = setUp(t, HOUR_MS);
  for (const name of ['SIGHUP', 'SIGUSR1', 'SIGUSR2']) signals.emit(name);
  t.deepEqual(log, ['SIGHUP', 'SIGUSR1', 'SIGUSR2']);
});

test('a registration that is refused is told, ends the child, and exits with 1', async (t) => {
  const { log, announcement, exitCode, exit } = setUp(t);
  announcement.reject(new Error('taken'));
  await until(() => log.includes('SIGTERM'), 'the end of the child');
  t.deepEqual(log, ['failed: taken', 'SIGTERM']);
  exit(0);
  t.is(await exitCode, 1);
});
