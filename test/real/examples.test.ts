import test, { type ExecutionContext } from 'ava';
import { type EtcdProcess, startEtcd } from '../support/etcd-process.ts';
import { Program } from '../support/program.ts';
import { until } from '../support/wait.ts';

let etcd: EtcdProcess;

test.before(async () => {
  etcd = await startEtcd();
});

test.after.always(() => etcd?.destroy());

function start(t: ExecutionContext, script: string, env: NodeJS.ProcessEnv = {}): Program {
  const program = new Program(`examples/${script}`, [], { ETCD_ENDPOINTS: etcd.endpoint, ...env });
  t.teardown(() => program.end('SIGKILL'));
  return program;
}

test.serial(
  'the example service is found by the example subscriber, answers there, and leaves the list before it stops to answer',
  async (t) => {
    const subscriber = start(t, 'subscriber.ts');
    await subscriber.printed(/^live \[\] came \[\] went \[\] changed \[\]$/m);

    const service = start(t, 'http-service.ts', { NAME: 'node-1', DRAIN_S: '3' });
    const [, address = ''] = await subscriber.printed(/^live \[node-1=(\S+)\] came \[node-1\]/m);
    t.is(await (await fetch(address)).text(), 'hello from node-1\n');

    service.end('SIGTERM');
    await subscriber.printed(/^live \[\] came \[\] went \[node-1\]/m);
    t.is(
      await (await fetch(address)).text(),
      'hello from node-1\n',
      'it drains: those who have not heard of it yet are served',
    );
    t.is(await service.exit(), 0);
    await t.throwsAsync(fetch(address));

    subscriber.end('SIGTERM');
    t.is(await subscriber.exit(), 0);
    t.is(subscriber.stderr + service.stderr, '');
  },
);

test.serial('the example service says when it is not listed, and goes on serving', async (t) => {
  const service = start(t, 'http-service.ts', { NAME: 'node-2' });
  const [, address = ''] = await service.printed(/node-2 serves at (\S+) and is registered/);
  etcd.pause();
  t.teardown(() => etcd.resume());
  await until(() => service.stderr.includes('not listed at present: '), 'the warning');
  t.is(await (await fetch(address)).text(), 'hello from node-2\n');
});
