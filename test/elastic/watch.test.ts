import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import test from 'ava';
import type { ClusterStatus } from '../../src/elastic/status.ts';
import { bindToThisProcess } from '../support/children.ts';
import { CHANGE_PATIENCE_MS, TestElastic } from '../support/elastic.ts';
import { until } from '../support/wait.ts';

const COMMAND = fileURLToPath(new URL('../../src/cli/main.ts', import.meta.url));

interface Watching {
  readonly child: ChildProcess;
  stdout: string;
  stderr: string;
}

function watchStatus(endpoints: readonly string[], ...flags: string[]): Watching {
  const args = ['--import', 'tsx', COMMAND, '--endpoints', endpoints.join(), ...flags, 'elastic', 'status', '--watch'];
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'] });
  bindToThisProcess(child);
  const watching: Watching = { child, stdout: '', stderr: '' };
  child.stdout.on('data', (chunk: Buffer) => {
    watching.stdout += chunk.toString();
  });
  child.stderr.on('data', (chunk: Buffer) => {
    watching.stderr += chunk.toString();
  });
  return watching;
}

async function end({ child }: Watching): Promise<number | null> {
  child.kill('SIGINT');
  if (child.exitCode === null) await once(child, 'exit');
  return child.exitCode;
}

test('status --watch tells what changes, why, and what to do; with --json an object a line', async (t) => {
  const cluster = new TestElastic();
  t.teardown(() => cluster.destroy());
  const flags = ['--ideal-cluster-size', '3'];
  await (await cluster.add({ flags })).ready();
  for (let count = 2; count <= 3; count++) await cluster.prepare();
  const urls = cluster.hosts.map(({ clientUrl }) => clientUrl);
  const text = watchStatus(urls);
  const json = watchStatus(urls, '--json');
  await until(() => text.stdout.includes('healthy, and as wanted'), 'the first look');
  const [, h2, h3] = cluster.hosts;
  if (!h2 || !h3) return t.fail();
  cluster.restart(h2, { flags });
  cluster.restart(h3, { flags });
  await cluster.settled(3);
  await until(
    () => text.stdout.includes('1 further failure can be stood') && json.stdout.includes('"canStand":1'),
    'three voters to be told of',
  );
  await h3.crash();
  await until(
    () => [text, json].every(({ stdout }) => stdout.includes('h3 is dead and stays a member')),
    'the death to be told of',
    CHANGE_PATIENCE_MS,
  );
  t.deepEqual([await end(text), await end(json)], [130, 130]);
  t.deepEqual([text.stderr, json.stderr], ['', '']);

  t.regex(text.stdout, /note +h\d does not vote yet: it has to be connected for 5 s/);
  t.regex(text.stdout, /note +h3 does not answer: its agent is gone too; it is given up after 3 s/);
  t.regex(text.stdout, /TO DO +start h3 again, or start another host/);
  t.notRegex(text.stdout, /\u001b/);
  const tables = text.stdout.split(/^HOST /m).length - 1;
  const states = json.stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as ClusterStatus);
  t.is(new Set(states.map(({ clusterId }) => clusterId)).size, 1);
  t.true(states.some(({ blocked }) => blocked.some(({ what }) => what.includes('does not vote yet'))));
  t.true(states.some(({ canStand }) => canStand === 1));
  t.is(states.at(-1)?.rows.find(({ host }) => host === 'h3')?.role, 'dead');
  // The minute in which nothing happens says nothing: a table is written for a change, not for the time.
  t.true(tables < 60 && states.length < 60, `${tables} tables, ${states.length} lines`);
});
