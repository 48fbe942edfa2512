import test from 'ava';
import { wrap } from '../../src/demo/text.ts';
import { nothingIsLeft, startDemo } from '../support/demo.ts';
import { startEtcd } from '../support/etcd-process.ts';
import { etcdctl } from '../support/etcdctl.ts';
import { until } from '../support/wait.ts';

const RUN_BOUND_MS = 120_000;

const linux = process.platform === 'linux' ? test.serial : test.serial.skip;

linux('the demo tells its story to the end, and leaves no process and no folder', async (t) => {
  t.timeout(2 * RUN_BOUND_MS);
  const demo = startDemo(t);
  await demo.printed(/etcd \S+ answers at/);
  t.is(demo.folders().length, 1);
  t.is(await demo.exit(RUN_BOUND_MS), 0, demo.stderr);
  nothingIsLeft(t, demo);
  t.is(demo.stderr, '');

  const steps = [...demo.stdout.matchAll(/^ *[\d.]+ s {2}(\d\/7) {2}\S.*\n((?: *[\d.]+ s {7}.*\n)+)/gm)];
  t.deepEqual(
    steps.map(([, number]) => number),
    [1, 2, 3, 4, 5, 6, 7].map((number) => `${number}/7`),
  );
  for (const [, number, lines = ''] of steps) {
    const text = lines
      .replace(/^ *[\d.]+ s +/gm, '')
      .trim()
      .replaceAll('\n', ' ');
    t.true(wrap(text, 78).length <= 4, `what step ${number} says fits on a small terminal`);
  }
  const sentToTheDead = [...demo.stdout.matchAll(/SIGKILL of web-\d: .* (\d+) sent to it since/g)].map(([, n]) => n);
  t.deepEqual(sentToTheDead, ['0', '0'], 'no request goes to the dead once they are off the list');
  t.regex(demo.stdout, /it was the mirror’s master; web-\d was the next/);
  t.regex(demo.stdout, /failed, all between a SIGKILL and its detection$/m);
  t.regex(demo.stdout, /restart with SIGTERM: 0 failed; rolling all 6: 0 failed/);
  t.regex(demo.stdout, /all mirrored watchers +0 +0 /);
  const [, few, many] = /all direct watchers +(\d+) +(\d+)/.exec(demo.stdout) ?? [];
  t.true(Number(many) > Number(few) && Number(few) > 0, `N² shows: ${few}, then ${many}`);
});

linux('Ctrl-C ends the demo at once, before anything stands', async (t) => {
  const demo = startDemo(t);
  await demo.printed(/1\/7/);
  demo.end('SIGINT');
  t.is(await demo.exit(), 130);
  nothingIsLeft(t, demo);
  t.regex(demo.stdout, /ended early/);
});

linux('Ctrl-C ends the demo in the middle of a crash, and a second one that npm echoes does no harm', async (t) => {
  const demo = startDemo(t);
  await demo.printed(/SIGKILL for web-\d \(pid/);
  demo.end('SIGINT');
  demo.end('SIGINT');
  t.is(await demo.exit(), 130);
  nothingIsLeft(t, demo);
});

linux('when the demo is killed, all that it started ends by itself', async (t) => {
  const demo = startDemo(t);
  await demo.printed(/web-1 is on the list/);
  demo.end('SIGKILL');
  await until(() => demo.processes().length === 0 && demo.folders().length === 0, 'processes and folder to go');
  t.pass();
});

linux('when its etcd dies, the demo says so and ends', async (t) => {
  const demo = startDemo(t);
  const [, pid] = await demo.printed(/\(pid (\d+), in a temporary folder\)/);
  process.kill(Number(pid), 'SIGKILL');
  t.is(await demo.exit(), 1);
  t.regex(demo.stderr, /etcd ended unexpectedly/);
  nothingIsLeft(t, demo);
});

linux(
  'in an etcd that others run, the demo deletes what it wrote and nothing else, also when it is killed',
  async (t) => {
    const etcd = await startEtcd();
    t.teardown(() => etcd.destroy());
    const keys = async () =>
      (await etcdctl(etcd.endpoint, 'get', '--prefix', '--keys-only', '')).split('\n').filter(Boolean);
    await etcdctl(etcd.endpoint, 'put', '/ephemeral-demo', 'not the demo’s');
    await etcdctl(etcd.endpoint, 'put', '/ephemeral-demp/', 'nor this');
    const others = await keys();

    for (const [signal, code] of [
      ['SIGINT', 130],
      ['SIGKILL', 'SIGKILL'],
    ] as const) {
      const demo = startDemo(t, [etcd.endpoint.replace('http://', '')]);
      await demo.printed(/web-1 is on the list/);
      t.true((await keys()).some((key) => /^\/ephemeral-demo-\w+\/services\/web\/web-1$/.test(key)));
      demo.end(signal);
      t.is(await demo.exit(), code);
      await until(() => demo.processes().length === 0, 'the processes to end');
      t.deepEqual(await keys(), others);
    }
  },
);

test.serial('without etcd the demo says what to do', async (t) => {
  const demo = startDemo(t, [], { ETCD_BIN_DIR: '/nowhere' });
  t.is(await demo.exit(), 1);
  t.regex(demo.stderr, /no etcd in ETCD_BIN_DIR \(\/nowhere\): install etcd 3\.4 or newer/);
});

test.serial('where no etcd answers the demo says what to do', async (t) => {
  const demo = startDemo(t, ['http://127.0.0.1:9']);
  t.is(await demo.exit(), 1);
  t.regex(demo.stderr, /no etcd answers at http:\/\/127\.0\.0\.1:9 .*check ETCD_ENDPOINTS/);
});
