import test from 'ava';
import { InvalidOptionError } from '../../../src/core/errors.ts';
import { type ElasticOptions, mayBootstrapUnasked, resolveElasticOptions } from '../../../src/elastic/options.ts';

const WRONG: readonly (readonly [object, RegExp])[] = [
  [{ host: 'h1' }, /no option "host"/],
  [{ hostname: 'a/b' }, /hostname "a\/b"/],
  [{ hostname: 'a=b' }, /hostname/],
  [{ hostname: '_a' }, /hostname/],
  [{ seeds: [] }, /seeds is a list/],
  [{ seeds: ['127.0.0.1:2379'] }, /seeds: "127.0.0.1:2379" is none/],
  [{ clientUrls: ['http://127.0.0.1'] }, /clientUrls: /],
  [{ clientUrls: ['http://user:secret@127.0.0.1:2379'] }, /clientUrls/],
  [{ serverUrls: ['tcp://127.0.0.1:2380'] }, /serverUrls/],
  [{ serverUrls: ['http://127.0.0.1:2379'] }, /given twice/],
  [{ clientUrls: ['http://0.0.0.0:2379'] }, /advertiseClientUrls: .* listen on/],
  [{ noServer: true }, /noServer needs seeds/],
  [{ noServer: true, bootstrap: true, seeds: ['http://a:2379'] }, /contradict/],
  [{ noNetwork: true, seeds: ['http://a:2379'] }, /noNetwork and seeds contradict/],
  [{ noNetwork: true, clientUrls: ['http://127.0.0.1:2379'] }, /noNetwork and clientUrls contradict/],
  [{ noNetwork: true, advertiseServerUrls: ['http://127.0.0.1:2379'] }, /noNetwork and advertiseServerUrls contradict/],
  [{ noNetwork: true, trustedCaFile: '/nowhere' }, /noNetwork and trustedCaFile contradict/],
  [{ noNetwork: true, noServer: true }, /noServer needs seeds/],
  [{ noNetwork: true, dataDir: `/${'x'.repeat(110)}` }, /bytes too long for a socket/],
  [{ namespace: '/' }, /namespace "\/"/],
  [{ namespace: '/x/' }, /namespace/],
  [{ namespace: 'x' }, /namespace/],
  [{ idealClusterSize: 0 }, /idealClusterSize/],
  [{ idealClusterSize: 100 }, /idealClusterSize/],
  [{ idealClusterSize: 2.5 }, /idealClusterSize/],
  [{ idealClusterSize: '5' }, /idealClusterSize/],
  [{ minVoters: 0 }, /minVoters/],
  [{ deadAfter: -1 }, /deadAfter/],
  [{ dataDir: '/tmp/x', stateDir: '/tmp/x' }, /stateDir/],
  [{ etcd: { speed: 1 } }, /no "speed"/],
  [{ certFile: '/nowhere' }, /trustedCaFile/],
  [{ trustedCaFile: '/nowhere' }, /cannot read \/nowhere/],
];

test('each wrong option is one clear error, before anything is started', (t) => {
  for (const [options, message] of WRONG) {
    t.throws(
      () => resolveElasticOptions(options as ElasticOptions),
      { instanceOf: InvalidOptionError, message },
      JSON.stringify(options),
    );
  }
});

test('what is left out has its default', (t) => {
  const config = resolveElasticOptions({ hostname: 'h1' });
  t.deepEqual(config.clientUrls, ['http://127.0.0.1:2379']);
  t.deepEqual(config.serverUrls, ['http://127.0.0.1:2380']);
  t.is(config.namespace, '/_elastic');
  t.true(config.dataDir.endsWith('/h1.elastic'));
  t.is(config.stateDir, `${config.dataDir}.state`);
  t.is(config.policy.deadAfterMs, 30_000);
});

test('a local client URL is added where none is given, and is not advertised', (t) => {
  const config = resolveElasticOptions({ clientUrls: ['http://10.0.0.1:2379'] });
  t.deepEqual(config.clientUrls, ['http://10.0.0.1:2379', 'http://127.0.0.1:2379']);
  t.deepEqual(config.advertiseClientUrls, ['http://10.0.0.1:2379']);
});

test('a new cluster is founded unasked on this machine only', (t) => {
  t.true(mayBootstrapUnasked(resolveElasticOptions({})));
  t.false(mayBootstrapUnasked(resolveElasticOptions({ serverUrls: ['http://10.0.0.1:2380'] })));
});
