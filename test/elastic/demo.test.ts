import test from 'ava';
import { nothingIsLeft, startDemo } from '../support/demo.ts';
import { until } from '../support/wait.ts';

const RUN_BOUND_MS = 240_000;
const linux = process.platform === 'linux' ? test.serial : test.serial.skip;

linux(
  'the elastic demo grows, heals and shrinks a cluster to the end, and leaves no process and no folder',
  async (t) => {
    const demo = startDemo(t, ['--elastic']);
    t.is(await demo.exit(RUN_BOUND_MS), 0, demo.stderr);
    nothingIsLeft(t, demo);
    t.is(demo.stderr, '');
    const steps = [...demo.stdout.matchAll(/ (\d)\/4 /g)].map(([, number]) => number);
    t.deepEqual(steps, ['1', '2', '3', '4']);
    t.regex(demo.stdout, /h\d killed and replaced by h6/);
    t.regex(demo.stdout, /5 to 1 voter .*; h\d is the one that stayed/);
  },
);

linux('when the elastic demo is killed, its hosts and their etcds end by themselves', async (t) => {
  const demo = startDemo(t, ['--elastic']);
  await demo.printed(/h3 runs/);
  t.is(demo.folders().length, 1);
  demo.end('SIGKILL');
  await until(() => demo.processes().length === 0 && demo.folders().length === 0, 'processes and folder to go');
  t.pass();
});
