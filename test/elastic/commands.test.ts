import { execFile } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import test from 'ava';
import { temporaryFolder } from '../support/children.ts';
import { CHANGE_PATIENCE_MS, TestElastic } from '../support/elastic.ts';
import { etcdctl } from '../support/etcdctl.ts';
import { until } from '../support/wait.ts';

const COMMAND = fileURLToPath(new URL('../../src/cli/main.ts', import.meta.url));

interface WriteOut {
  readonly header: { readonly revision: number };
}

interface Ended {
  readonly code: number | string | null;
  readonly stdout: string;
  readonly stderr: string;
}

function elastic(endpoint: string, ...args: string[]): Promise<Ended> {
  const line = ['--import', 'tsx', COMMAND, '--endpoints', endpoint, 'elastic', ...args];
  return new Promise((resolve) => {
    execFile(process.execPath, line, (error, stdout, stderr) => resolve({ code: error?.code ?? 0, stdout, stderr }));
  });
}

test('each command says what it did with its exit code, and what is wrong in one line', async (t) => {
  const cluster = new TestElastic();
  t.teardown(() => cluster.destroy());
  const h1 = await cluster.add({ flags: ['--ideal-cluster-size', '3'] });
  await h1.ready();
  const url = h1.clientUrl;
  await cluster.settled(1);
  t.is((await elastic(url, 'status')).code, 0);
  t.regex((await elastic(url, 'plan')).stdout, /^wanted +1 voter: h1\nnothing to do\n$/);

  const five = await elastic(url, 'resize', 'five');
  t.is(five.code, 2);
  t.regex(five.stderr, /the size "five" is none: it is a whole number from 1 to 99/);
  const last = await elastic(url, 'leave', 'h1');
  t.is(last.code, 1);
  t.regex(last.stderr, /CLUSTER_STATE: h1 is the last member/);
  const nobody = await elastic(url, 'leave', 'h9');
  t.is(nobody.code, 1);
  t.regex(nobody.stderr, /CLUSTER_STATE: there is no host h9/);

  await cluster.add();
  const h3 = await cluster.add();
  await cluster.settled(3);
  await h3.crash();
  await until(
    async () => (await elastic(url, 'plan')).stdout.includes('h3 does not answer'),
    'the plan to tell of h3',
    CHANGE_PATIENCE_MS,
  );
  const impatient = await elastic(url, '--timeout', '0.1', 'wait');
  t.is(impatient.code, 1);
  t.regex(impatient.stderr, /ELASTIC_TIMEOUT: not as wanted within 0.1 s: .*h3/);
  t.is((await elastic(url, 'status')).code, 1);
  cluster.restart(h3);
  await h3.ready();
  t.deepEqual(await elastic(url, 'wait'), { code: 0, stdout: '', stderr: '' });
  const status = await elastic(url, '--json', 'status');
  t.is(status.code, 0);
  t.is((JSON.parse(status.stdout) as { canStand: number }).canStand, 1);

  const folder = temporaryFolder('backup-');
  const backup = await elastic(url, 'backup', folder);
  t.is(backup.code, 0);
  t.deepEqual(readdirSync(folder), [backup.stdout.trim().split('/').at(-1)]);
  await etcdctl(url, 'put', '/history', 'old');
  const { revision } = (JSON.parse(await etcdctl(url, 'put', '/history', 'new', '-w', 'json')) as WriteOut).header;
  t.regex((await elastic(url, 'heal')).stdout, /there is nothing to heal, and nothing was changed/);
  t.regex(await etcdctl(url, 'get', '/history', '--rev', String(revision - 1)), /old/);

  const nine = await elastic(url, 'resize', '9');
  t.is(nine.stdout, '9 voters are wanted; 3 hosts are there: 3 vote, until more hosts come\n');
  const joined = /^joining as member ([0-9a-f]+)$/m.exec(h3.stderr)?.[1];
  t.true((await cluster.remote().status()).rows.some(({ host, memberId }) => host === 'h3' && memberId === joined));
  t.regex(h1.stderr, /^record: join h3: /m);

  t.deepEqual(await elastic(url, 'resize', '1'), { code: 0, stdout: '1 voter is wanted\n', stderr: '' });
  t.is((await elastic(url, 'wait')).code, 0);
  t.is((await elastic(url, 'leave', 'h3')).code, 0);
  t.is(await h3.ended(), 0);
  t.regex(h3.stderr, /h3 leaves the cluster/);
  await until(
    async () => !(await cluster.remote().status()).rows.some(({ host }) => host === 'h3'),
    'h3 to be forgotten',
    CHANGE_PATIENCE_MS,
  );
  const nowhere = await elastic('http://127.0.0.1:1', 'status');
  const told = await elastic('http://127.0.0.1:1', 'status', '--state-dir', h1.stateDir);
  t.regex(told.stderr, /h1 remembers cluster [0-9a-f]+ with h\d at http.*: it serves when .* recover on this host/);
  t.is(nowhere.code, 1);
  t.regex(
    nowhere.stderr,
    /CONNECTION: no member answers at .*: start the hosts with ephemeral elastic run, .* recover/,
  );
});

test('^C on the only host stops it, and says that it keeps its data', async (t) => {
  const cluster = new TestElastic();
  t.teardown(() => cluster.destroy());
  const h1 = await cluster.add();
  await h1.ready();
  await cluster.settled(1);
  h1.signal('SIGINT');
  t.is(await h1.ended(), 130);
  t.regex(h1.stderr, /the only host does not leave: it stops, and keeps its data/);
  t.notRegex(h1.stderr, /for good|leaves the cluster/);
  cluster.restart(h1);
  await h1.ready();
});
