import test from 'ava';
import { MEASUREMENTS, parseOptions, UsageError } from '../../benchmarks/options.ts';

test('a benchmark without options measures everything on an etcd of its own', (t) => {
  const options = parseOptions([], 'results');
  t.deepEqual(options.only, MEASUREMENTS);
  t.is(options.endpoint, undefined);
  t.is(options.out, 'results');
});

for (const [args, reason] of [
  [['--only', 'storms'], /no measurement storms/],
  [['--contestants', 'consul'], /no contestant consul/],
  [['--sizes', '10,none'], /none is no positive whole number/],
  [['--rounds', '0'], /0 is no positive whole number/],
  [['--endpoints', 'http://a:2379,http://b:2379'], /give one/],
  [['--endpoints', ','], /give one/],
  [['--endpoints', 'https://a:2379'], /no http:\/\/ URL/],
  [['--endpoints', 'a:2379'], /no http:\/\/ URL/],
  [['--fast'], /--fast/],
] as const) {
  test(`a benchmark refuses ${args.join(' ')}, and says why`, (t) => {
    const error = t.throws(() => parseOptions(args, 'results'), { instanceOf: UsageError });
    t.regex(error.message, reason);
  });
}
