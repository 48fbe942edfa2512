import test from 'ava';
import { ElasticRemote } from '../../src/elastic/remote.ts';
import { ElasticCluster } from '../../src/elastic.ts';
import { EtcdEphemeral } from '../../src/index.ts';
import { temporaryFolder } from '../support/children.ts';
import { until } from '../support/wait.ts';

test('without a network a host serves through a socket alone, and comes back with its data', async (t) => {
  const dataDir = temporaryFolder('socket-');
  const options = { hostname: 'h1', dataDir, noNetwork: true };
  const endpoint = `unix://${dataDir}/client.sock:0`;
  const first = new ElasticCluster(options);
  t.teardown(() => first.stop());
  await first.start();
  await first.ephemeral.addDir('/kept');
  const client = await EtcdEphemeral.connect({ hosts: endpoint, follow: '/_elastic' });
  await client.addKey('/services/one', 'v');
  t.is(await first.ephemeral.get('/services/one'), 'v');
  const remote = new ElasticRemote({ endpoints: [endpoint], namespace: '/_elastic' });
  t.teardown(() => remote.close());
  const [row] = await until(async () => {
    const status = await remote.status();
    return status.healthy && status.converged && status.rows;
  }, 'it to be as wanted');
  t.is(row?.role, 'voter');
  t.is(row?.endpoint, endpoint);
  await client.close();
  const { memberId } = row ?? {};
  await first.stop();
  t.is((await first.exited).reason, 'stopped');

  const second = new ElasticCluster(options);
  t.teardown(() => second.stop());
  await second.start();
  await t.throwsAsync(second.ephemeral.addDir('/kept'), { code: 'PATH_EXISTS' });
  await until(async () => (await remote.status()).rows[0]?.memberId === memberId, 'it to be the same member');
});
