import { existsSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { temporaryFolder } from '../support/children.ts';
import { TestElastic } from '../support/elastic.ts';

/** What a host that cannot start says, in one line, and what it does not do. */
const REFUSED: readonly (readonly [what: string, flags: readonly string[], says: RegExp])[] = [
  ['a malformed URL', ['--client-urls', '127.0.0.1:2379'], /INVALID_OPTION: clientUrls: "127.0.0.1:2379" is none/],
  ['no server without seeds', ['--no-server'], /INVALID_OPTION: noServer needs seeds/],
  ['sockets beside URLs', ['--no-network'], /INVALID_OPTION: noNetwork and clientUrls contradict each other/],
  ['a size out of range', ['--ideal-cluster-size', '100'], /INVALID_OPTION: idealClusterSize .* got 100/],
  ['a namespace that is none', ['--namespace', '/'], /INVALID_OPTION: namespace "\/"/],
  [
    'an etcd that is missing',
    ['--etcd-path', '/nowhere/etcd'],
    /ETCD_PROCESS: .*\/nowhere\/etcd: there is no such file/,
  ],
  ['certificates that are missing', ['--trusted-ca-file', '/nowhere/ca'], /INVALID_OPTION: trustedCaFile: cannot read/],
];

for (const [what, flags, says] of REFUSED) {
  test.serial(`${what} is refused before anything is started`, async (t) => {
    const cluster = new TestElastic();
    t.teardown(() => cluster.destroy());
    const host = await cluster.add({ flags });
    t.is(await host.ended(), 1);
    t.regex(host.stderr, says);
    t.is(host.stderr.trim().split('\n').length, 1, host.stderr);
    t.is(host.stdout, '');
    t.false(existsSync(host.dataDir) || existsSync(host.stateDir), 'a first start that failed leaves nothing');
  });
}

for (const [version, says] of [
  ['3.3.25', /etcd 3\.3\.25 does not serve here: 3\.4 or newer/],
  ['3.5.1', /etcd 3\.5\.1 brings removed members back/],
  ['4.0.0', /etcd 4\.0\.0 does not serve here/],
] as const) {
  test.serial(`etcd ${version} is refused, with what to install`, async (t) => {
    const cluster = new TestElastic();
    t.teardown(() => cluster.destroy());
    const path = join(temporaryFolder('etcd-'), 'etcd');
    writeFileSync(path, `#!/bin/sh\necho etcd Version: ${version}\n`, { mode: 0o755 });
    const host = await cluster.add({ flags: ['--etcd-path', path] });
    t.is(await host.ended(), 1);
    t.regex(host.stderr, /ETCD_PROCESS/);
    t.regex(host.stderr, says);
  });
}

test.serial('the data of another cluster is refused, and not touched', async (t) => {
  const cluster = new TestElastic();
  const other = new TestElastic();
  t.teardown(() => Promise.all([cluster.destroy(), other.destroy()]));
  const h1 = await cluster.add();
  const stranger = await other.add();
  await Promise.all([h1.ready(), stranger.ready()]);
  await Promise.all([h1.stop(), stranger.stop()]);
  rmSync(join(h1.dataDir, 'etcd'), { recursive: true });
  renameSync(join(stranger.dataDir, 'etcd'), join(h1.dataDir, 'etcd'));
  cluster.restart(h1);
  t.is(await h1.ended(), 1);
  t.regex(h1.stderr, /WRONG_CLUSTER: .* answers for cluster [0-9a-f]+, and this host belongs to [0-9a-f]+/);
  t.is(h1.etcdPid, undefined);
  renameSync(join(h1.dataDir, 'etcd'), join(stranger.dataDir, 'etcd'));
  other.restart(stranger);
  await stranger.ready();
});
