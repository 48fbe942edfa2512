import test from 'ava';
import { InvalidOptionError } from '../../src/core/errors.ts';
import { nextEndpoint, parseEndpoints } from '../../src/etcd/endpoints.ts';

const urls = (hosts: string | string[], hasCredentials = false) =>
  parseEndpoints(hosts, hasCredentials).map((endpoint) => endpoint.url);

test('a host may leave out the scheme and the port', (t) => {
  t.deepEqual(urls('localhost'), ['http://localhost:2379']);
  t.deepEqual(urls('localhost', true), ['https://localhost:2379']);
  t.deepEqual(urls('etcd-1.example.com:1234'), ['http://etcd-1.example.com:1234']);
  t.deepEqual(urls(['http://a', 'HTTP://b:80/']), ['http://a:2379', 'http://b:80']);
  t.deepEqual(urls('https://[::1]'), ['https://[::1]:2379']);
  t.deepEqual(urls('https://a:443'), ['https://a:443']);
});

test('a host may be a socket of this machine', (t) => {
  t.deepEqual(urls('unix:///tmp/client.sock:0'), ['unix:///tmp/client.sock:0']);
  t.throws(() => urls('unix:///tmp/a', true), { message: /credentials/ });
});

test('a host given twice is one endpoint', (t) => {
  t.deepEqual(urls(['a', 'http://a:2379', 'b']), ['http://a:2379', 'http://b:2379']);
});

for (const host of [
  '',
  ' ',
  'http://',
  'ftp://a',
  'unix://x',
  'unix:///',
  'unix:///tmp/a b',
  'http://a/b',
  'http://a?b',
  'a b',
  'a,b',
  'a:99999',
  'a:b',
]) {
  test(`"${host}" is refused as a host`, (t) => {
    t.throws(() => urls(host), { instanceOf: InvalidOptionError });
  });
}

test('a password in a URL is refused, and not repeated', (t) => {
  const error = t.throws(() => urls('http://root:secret@a'), { instanceOf: InvalidOptionError });
  t.false(error?.message.includes('secret'));
});

test('http is refused beside https, and together with credentials', (t) => {
  t.throws(() => urls(['http://a', 'https://b']), { message: /mixed/ });
  t.throws(() => urls(['a', 'https://b']), { message: /mixed/ });
  t.throws(() => urls('http://a', true), { message: /credentials/ });
});

test('endpoints are taken in turn; the first, and after one that is gone, by chance', (t) => {
  const endpoints = parseEndpoints(['a', 'b', 'c'], false);
  const next = (last: string | undefined, start: number) => nextEndpoint(endpoints, last, start).url;
  t.is(next(undefined, 1), 'http://b:2379');
  t.is(next('http://a:2379', 0), 'http://b:2379');
  t.is(next('http://c:2379', 1), 'http://a:2379');
  t.is(next('http://gone:2379', 2), 'http://c:2379');
});
