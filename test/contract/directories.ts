import type { TestFn } from 'ava';
import {
  DirectoryNotEmptyError,
  IsDirectoryError,
  NotADirectoryError,
  PathExistsError,
  PathNotFoundError,
} from '../../src/index.ts';
import type { World } from '../support/space.ts';
import { Space } from '../support/space.ts';

/** Directories, and what is read once. */
export function directoryContract(test: TestFn, world: () => World): void {
  test('an added directory stays when its maker is gone, and is listed empty', async (t) => {
    const space = await Space.open(t, world());
    const maker = await space.connect();
    await maker.addDir('/services');
    await maker.addDir('/services/deep/deeper');
    await maker.close();
    const reader = await space.connect();
    t.deepEqual((await reader.list('/services')).children, ['deep']);
    t.deepEqual((await reader.list('/services')).directories, ['deep']);
    t.deepEqual((await reader.list('/services/deep')).children, ['deeper']);
    t.deepEqual((await reader.list('/services/deep/deeper')).children, []);
  });

  test('a directory that was added before is a PathExistsError, or none with exclusive: false', async (t) => {
    const space = await Space.open(t, world());
    const client = await space.connect();
    await client.addDir('/d');
    const before = await space.dump();
    const error = await t.throwsAsync(client.addDir('/d'), { instanceOf: PathExistsError, code: 'PATH_EXISTS' });
    t.regex(error?.message ?? '', /\/d .*exclusive: false/);
    await client.addDir('/d', { exclusive: false });
    t.deepEqual(await space.dump(), before);
    await client.addDir('/e', { exclusive: false });
    t.deepEqual((await client.list('/')).children, ['d', 'e']);
  });

  test('a directory may be added where keys lie below already, and where a key of its name is', async (t) => {
    const space = await Space.open(t, world());
    const client = await space.connect();
    await client.addKey('/d/k', 'v');
    await client.addDir('/d');
    await client.addDir('/d/k');
    const { children, directories } = await client.list('/d');
    t.deepEqual([children, directories], [['k'], ['k']]);
    t.is(await client.get('/d/k'), 'v');
  });

  test('an empty directory can be removed; one with a key or a directory anywhere below stays as it is', async (t) => {
    const space = await Space.open(t, world());
    const client = await space.connect();
    for (const below of ['/key', '/deep/er/key']) {
      await client.addDir('/d');
      const key = await client.addKey(`/d${below}`, '');
      const before = await space.dump();
      const error = await t.throwsAsync(client.removeDir('/d'), { instanceOf: DirectoryNotEmptyError });
      t.regex(error?.message ?? '', /\/d .*remove them first/);
      t.deepEqual(await space.dump(), before);
      await key.remove();
      await client.removeDir('/d');
      t.deepEqual(await space.dump(), []);
    }
    await client.addDir('/d');
    await client.addDir('/d/e/f');
    await t.throwsAsync(client.removeDir('/d'), { instanceOf: DirectoryNotEmptyError, code: 'DIRECTORY_NOT_EMPTY' });
    await client.removeDir('/d/e/f');
    await client.removeDir('/d');
    t.deepEqual(await space.dump(), []);
  });

  test('removing a directory that was not added is a PathNotFoundError that says so', async (t) => {
    const space = await Space.open(t, world());
    const client = await space.connect();
    await client.addKey('/d/k', 'v');
    const before = await space.dump();
    for (const path of ['/nothing', '/d']) {
      const error = await t.throwsAsync(client.removeDir(path), { instanceOf: PathNotFoundError });
      t.regex(error?.message ?? '', /addDir/);
    }
    t.deepEqual(await space.dump(), before);
  });

  test('removing a directory leaves one whose name only begins alike', async (t) => {
    const space = await Space.open(t, world());
    const client = await space.connect();
    await client.addDir('/demo-service');
    await client.addDir('/demo-service-B');
    await client.addKey('/demo-service-B/k', '');
    await client.removeDir('/demo-service');
    t.deepEqual((await client.list('/')).children, ['demo-service-B']);
  });

  test('a listing holds keys and directories, each once and in order, at the revision it names', async (t) => {
    const space = await Space.open(t, world());
    const client = await space.connect();
    await client.addDir('/d/empty');
    for (const name of ['b', 'a', 'ä', 'B', 'a-1', 'a/x', 'a/y', 'full/x/y']) await client.addKey(`/d/${name}`, name);
    const before = await space.revision();
    const listing = await client.list('/d');
    t.deepEqual(listing.children, ['B', 'a', 'a-1', 'b', 'empty', 'full', 'ä']);
    t.deepEqual(listing.directories, ['a', 'empty', 'full']);
    t.is(listing.path, '/d');
    t.is(listing.status, 'live');
    t.true(before <= listing.revision && listing.revision <= (await space.revision()));
    t.is(listing.entries, undefined);
    t.throws(() => (listing.children as string[]).push('x'), { instanceOf: TypeError });
    const later = await space.put('/d/z', '');
    t.true((await client.list('/d')).revision >= later);
    t.false(listing.children.includes('z'), 'a listing does not change');
  });

  test('entries hold the value and the create revision of each child that is a key', async (t) => {
    const space = await Space.open(t, world());
    const client = await space.connect();
    const created = await space.put('/d/foreign', 'one');
    await space.put('/d/foreign', 'two');
    await client.addKey('/d/own', 'mine');
    await client.addDir('/d/dir');
    const listing = await client.list('/d', { values: true });
    t.deepEqual([...listing.entries.keys()], ['foreign', 'own']);
    t.deepEqual(listing.entries.get('foreign'), { value: 'two', created });
    t.is(listing.entries.get('own')?.value, 'mine');
    await space.remove('/d/foreign');
    const again = await space.put('/d/foreign', 'two');
    t.is((await client.list('/d', { values: true })).entries.get('foreign')?.created, again);
  });

  test('a listing turns into JSON with its entries as an object', async (t) => {
    const space = await Space.open(t, world());
    const client = await space.connect();
    const created = await space.put('/d/k', 'v');
    const names = await client.list('/d');
    const plain = { path: '/d', children: ['k'], directories: [], epoch: 0, status: 'live' };
    t.deepEqual(JSON.parse(JSON.stringify(names)), { ...plain, revision: names.revision });
    const values = await client.list('/d', { values: true });
    const expected = { ...plain, revision: values.revision, entries: { k: { value: 'v', created } } };
    t.deepEqual(JSON.parse(JSON.stringify(values)), expected);
  });

  test('nothing there is a PathNotFoundError, a key alone a NotADirectoryError, and both say what to do', async (t) => {
    const space = await Space.open(t, world());
    const client = await space.connect();
    await space.put('/d/k', 'v');
    const absent = await t.throwsAsync(client.list('/d/x'), { instanceOf: PathNotFoundError, code: 'PATH_NOT_FOUND' });
    t.regex(absent?.message ?? '', /\/d\/x.*addDir/);
    const key = await t.throwsAsync(client.list('/d/k'), { instanceOf: NotADirectoryError, code: 'NOT_A_DIRECTORY' });
    t.regex(key?.message ?? '', /\/d\/k.*get/);
    t.deepEqual((await client.list('/d')).children, ['k']);
  });

  test('get gives the value of a key, also of one that has children', async (t) => {
    const space = await Space.open(t, world());
    const client = await space.connect();
    await client.addKey('/d/k', 'päper \u{1f4c4}');
    await client.addKey('/d/k/below', '');
    t.is(await client.get('/d/k'), 'päper \u{1f4c4}');
    t.is(await client.get('/d/k/below'), '');
    const { children, directories } = await client.list('/d');
    t.deepEqual([children, directories], [['k'], ['k']]);
    t.deepEqual((await client.list('/d/k')).children, ['below']);
  });

  test('get on a directory is an IsDirectoryError, on nothing a PathNotFoundError', async (t) => {
    const space = await Space.open(t, world());
    const client = await space.connect();
    await client.addDir('/added');
    await client.addDir('/above/added');
    await space.put('/with/key', '');
    for (const path of ['/added', '/above', '/with']) {
      const error = await t.throwsAsync(client.get(path), { instanceOf: IsDirectoryError, code: 'IS_DIRECTORY' });
      t.regex(error?.message ?? '', new RegExp(`${path} .*list`));
    }
    await t.throwsAsync(client.get('/wit'), { instanceOf: PathNotFoundError, message: /\/wit/ });
  });

  test('one trailing slash of a path is dropped', async (t) => {
    const space = await Space.open(t, world());
    const client = await space.connect();
    await client.addDir('/d/');
    const key = await client.addKey('/d/k/', 'v');
    t.is(key.path, '/d/k');
    t.is(await client.get('/d/k/'), 'v');
    t.is((await client.list('/d/')).path, '/d');
    t.deepEqual(
      (await space.keys('/d')).map((kv) => kv.key.slice(space.namespace.length)),
      ['/d/k'],
    );
    await key.remove();
    await client.removeDir('/d/');
    t.deepEqual(await space.dump(), []);
  });

  test('the root can be listed, and our own keys are no part of it', async (t) => {
    const space = await Space.open(t, world());
    const client = await space.connect();
    t.deepEqual((await client.list('/')).children, []);
    await client.addDir('/d');
    await client.addKey('/k', 'v');
    const listing = await client.list('/', { values: true });
    t.is(listing.path, '/');
    t.deepEqual([listing.children, listing.directories, [...listing.entries.keys()]], [['d', 'k'], ['d'], ['k']]);
  });

  test('a namespace is any prefix: keys written without a leading slash are listed', async (t) => {
    const space = await Space.open(t, world(), `gozero.rpc-${process.pid}`);
    const lease = await space.grant(60);
    await space.put('/7587', '10.0.0.1:8080', lease);
    await space.put('/7588', '10.0.0.2:8080', lease);
    const client = await space.connect();
    t.deepEqual((await client.list('/')).children, ['7587', '7588']);
    t.is(await client.get('/7587'), '10.0.0.1:8080');
    await client.addKey('/7589', '10.0.0.3:8080');
    t.is(Buffer.from((await space.key('/7589'))?.value ?? []).toString(), '10.0.0.3:8080');
  });

  test('a namespace within a namespace sees its own part, by the same connection and lease', async (t) => {
    const space = await Space.open(t, world());
    const { client, traffic } = await space.connectCounted();
    const team = client.withNamespace('/team');
    const inner = team.withNamespace('/blue');
    const outer = await client.addKey('/team/blue/k', 'outer');
    await outer.remove();
    const registration = await inner.addKey('/k', 'v');
    await client.addKey('/k', 'v');
    t.is(registration.path, '/k');
    t.is(await client.get('/team/blue/k'), 'v');
    t.deepEqual((await team.list('/')).children, ['blue']);
    t.deepEqual((await inner.list('/')).children, ['k']);
    t.is(traffic.keepAliveStreams, 1);
    t.is((await space.key('/team/blue/k'))?.lease, (await space.key('/k'))?.lease);
    await inner.close();
    t.is(client.state, 'closed');
  });

  test('values that are no UTF-8 are shown with replacement characters, and names that are none are left out', async (t) => {
    const space = await Space.open(t, world());
    const client = await space.connect();
    await space.put('/d/k', Buffer.from([0x61, 0xff, 0x62]));
    t.is(await client.get('/d/k'), 'a\ufffdb');
    t.is((await client.list('/d', { values: true })).entries.get('k')?.value, 'a\ufffdb');
  });

  test('keys of others whose names no path has are not listed, and hinder nobody', async (t) => {
    const space = await Space.open(t, world());
    const client = await space.connect();
    const odd = [
      '/d/',
      '/d//x',
      '/d/_x',
      '/d/a/',
      '/d/a//b',
      '/d/./x',
      '/d/../x',
      '/d/\u0007bell',
      '/d/x\ufffdy',
      '/d/b/_c',
    ];
    for (const key of odd) await space.put(key, 'odd');
    await space.put('/d/good', 'v');
    t.deepEqual((await client.list('/d')).children, ['good']);
    t.deepEqual([...(await client.list('/d', { values: true })).entries.keys()], ['good']);
  });

  test('a child called constructor is a child like any other', async (t) => {
    const space = await Space.open(t, world());
    const client = await space.connect();
    await client.addKey('/d/constructor', 'v');
    await client.addKey('/d/toString/x', 'v');
    const listing = await client.list('/d', { values: true });
    t.deepEqual(listing.children, ['constructor', 'toString']);
    t.is(JSON.parse(JSON.stringify(listing)).entries.constructor.value, 'v');
  });
}
