import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { DataFolder } from '../../../src/elastic/data-folder.ts';
import { EndpointBook } from '../../../src/elastic/endpoint-book.ts';
import { describeExit } from '../../../src/elastic/etcd-process.ts';
import { isAlive, lockFolder, startOf } from '../../../src/elastic/folder-lock.ts';
import { makeFolder } from '../../../src/elastic/new-folder.ts';
import { mayHaveBeenRemoved } from '../../../src/elastic/own-removal.ts';
import { StateFile } from '../../../src/elastic/state-file.ts';
import { bindToThisProcess, temporaryFolder } from '../../support/children.ts';
import { until } from '../../support/wait.ts';

test('a folder that cannot be made is an error that says so, and leaves nothing', (t) => {
  const above = temporaryFolder('folder-');
  const file = join(above, 'file');
  writeFileSync(file, '');
  for (const path of [file, join(file, 'below'), ...(process.platform === 'linux' ? ['/proc/none/below'] : [])]) {
    t.throws(() => makeFolder(path), { code: 'INVALID_OPTION', message: /cannot be made .*: name another one/ });
  }
  t.deepEqual(readdirSync(above), ['file']);
});

test('a folder has one holder, and a dead one’s lock is taken over', async (t) => {
  const path = join(temporaryFolder('lock-'), 'agent.lock');
  const unlock = lockFolder(path);
  t.throws(() => lockFolder(path), { code: 'FOLDER_IN_USE', message: new RegExp(String(process.pid)) });
  unlock();
  const child = spawn(process.execPath, ['-e', '']);
  await once(child, 'exit');
  writeFileSync(path, JSON.stringify({ pid: child.pid, started: '1' }));
  lockFolder(path)();
  writeFileSync(path, JSON.stringify({ pid: process.pid, started: 'another process had this pid' }));
  lockFolder(path)();
  t.false(existsSync(path));
});

const linux = process.platform === 'linux' ? test : test.skip;

linux('a killed process that nobody has asked for its exit code is dead', async (t) => {
  // The shell becomes a sleep, which never asks what became of the child that it inherits; that one waits for it.
  const child = 'until [ "$(cat /proc/$$/comm)" = sleep ]; do sleep 0.01; done';
  const parent = spawn('sh', ['-c', `(${child}) & echo $!; exec sleep 60`], { stdio: ['ignore', 'pipe', 'ignore'] });
  bindToThisProcess(parent);
  const [line] = (await once(parent.stdout, 'data')) as [Buffer];
  const pid = Number(line.toString());
  const started = startOf(pid);
  await until(() => !isAlive({ pid, started }), 'the child to be dead');
  t.notThrows(() => process.kill(pid, 0));
  t.is(startOf(pid), started);
  parent.kill('SIGKILL');
});

test('what a host remembers is read back, and a damaged file is an error, not an empty one', (t) => {
  const folder = temporaryFolder('state-');
  const file = new StateFile(folder);
  t.is(file.current, undefined);
  const state = {
    host: 'h1',
    clusterId: '1',
    memberId: '2',
    endpoints: ['http://a:1'],
    members: [],
    raftIndex: 0,
    incarnation: 'i',
  };
  file.write(state);
  file.update({ raftIndex: 7 });
  t.deepEqual(new StateFile(folder).current, { ...state, raftIndex: 7 });
  writeFileSync(file.path, '{"host":');
  t.throws(() => new StateFile(folder), { code: 'CLUSTER_STATE', message: /is damaged/ });
});

test('data is put aside under a name of its own each time', (t) => {
  const folder = new DataFolder(temporaryFolder('data-'));
  for (let time = 0; time < 2; time++) {
    mkdirSync(join(folder.etcd, 'member', 'wal'), { recursive: true });
    t.false(folder.hasLog);
    writeFileSync(join(folder.etcd, 'member', 'wal', '0.wal'), '');
    t.true(folder.hasLog);
    folder.archive('7');
    t.false(folder.hasLog);
  }
  t.true(existsSync(join(folder.path, 'removed-7')) && existsSync(join(folder.path, 'removed-7.1')));
});

test('a client goes to its own member first, then to all that are published, and to seeds when none of those answers', (t) => {
  const book = new EndpointBook(['seed']);
  t.deepEqual(book.next(), ['seed']);
  book.publish(['a', 'b']);
  book.publish([]);
  book.connected();
  t.deepEqual(book.next(), ['a', 'b']);
  book.prefer('b');
  book.connected();
  t.deepEqual(book.next(), ['b']);
  t.deepEqual(book.next(), ['b', 'a']);
  for (let attempt = 0; attempt < 4; attempt++) book.next();
  t.deepEqual(book.next(), ['b', 'a', 'seed']);
});

test('a folder that a start has made is taken away with what was made above it, and one that holds anything stays', (t) => {
  const above = temporaryFolder('made-');
  const unmakeEmpty = makeFolder(join(above, 'a', 'b'));
  t.true(existsSync(join(above, 'a', 'b')));
  unmakeEmpty();
  t.false(existsSync(join(above, 'a')));
  t.true(existsSync(above));
  makeFolder(above)();
  t.true(existsSync(above), 'it was there before');
  const unmakeUsed = makeFolder(join(above, 'c', 'd'));
  writeFileSync(join(above, 'c', 'data'), '');
  unmakeUsed();
  t.true(existsSync(join(above, 'c', 'data')));
  t.false(existsSync(join(above, 'c', 'd')));
});

test('an etcd that was killed is started again unasked, once; whatever else ended may have been removed', (t) => {
  t.false(mayHaveBeenRemoved(describeExit(null, 'SIGKILL'), true));
  t.true(mayHaveBeenRemoved(describeExit(null, 'SIGKILL'), false));
  for (const code of [0, 1]) t.true(mayHaveBeenRemoved(describeExit(code, null), true));
});

test('etcd’s exit codes are understood', (t) => {
  t.is(describeExit(0, null).reason, 'removed');
  t.is(describeExit(1, null).reason, 'refused');
  t.is(describeExit(2, null).reason, 'panic');
  t.is(describeExit(null, 'SIGTERM').reason, 'stopped');
  t.is(describeExit(null, 'SIGKILL').reason, 'killed');
});
