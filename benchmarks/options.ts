/** The command line of `npm run bench`. */
import { parseArgs } from 'node:util';
import { type ContestantId, NAMES } from './contestants.ts';

export const MEASUREMENTS = [
  'storm',
  'change',
  'refresh',
  'register',
  'detect',
  'failover',
  'size',
  'start',
  'elastic',
] as const;
export type MeasurementName = (typeof MEASUREMENTS)[number];

const SIZES = [10, 50, 100, 200, 400];
const QUICK_SIZES = [5];
/** How many watchers the bar of a single change is about. */
export const CHANGE_N = 150;

export interface BenchOptions {
  readonly only: readonly MeasurementName[];
  /** How many clients. */
  readonly sizes: readonly number[];
  /** The same for single changes: where nothing else is asked for, with the size at which a bar compares them. */
  readonly changeSizes: readonly number[];
  /** Everything tiny: shows that it works and that the lists are right, never how fast it is. */
  readonly quick: boolean;
  /** An etcd that is there already; undefined: start one. */
  readonly endpoint: string | undefined;
  /** Let etcd wait for its disk. */
  readonly fsync: boolean;
  /** Only these contestants, beside what a bar compares; undefined: all that can be had. */
  readonly contestants: readonly ContestantId[] | undefined;
  readonly rounds: number | undefined;
  /** Where to write CPU profiles of the fleets; undefined: none. */
  readonly profile: string | undefined;
  /** Where results and report go. */
  readonly out: string;
}

export const USAGE = `npm run bench -- [options]

  --only NAME[,NAME…]       of ${MEASUREMENTS.join(', ')}
  --sizes N[,N…]            how many clients (default 10,50,100,200,400; for single changes also 150)
  --quick                   everything tiny, checking that the lists are right, not how fast
  --endpoints URL           an etcd that is there already, one endpoint without TLS or a password, so that all have the same way to it:
                            only a namespace of its own is touched, and removed in the end
  --contestants NAME[,…]    only these of ${Object.keys(NAMES).join(', ')} (default: all that can be had)
  --rounds N                how often each pair is repeated
  --fsync                   let etcd wait for its disk (default: its data lies in memory)
  --profile DIR             write CPU profiles of our clients there
  --out DIR                 where the results go (default benchmarks/results; with --quick its folder quick)
`;

export class UsageError extends Error {}

function list(text: string | undefined): readonly string[] | undefined {
  return text
    ?.split(',')
    .map((item) => item.trim())
    .filter(Boolean);
}

function positive(name: string, text: string): number {
  const n = Number(text);
  if (!Number.isInteger(n) || n < 1) throw new UsageError(`--${name}: ${text} is no positive whole number`);
  return n;
}

function isMeasurement(name: string): name is MeasurementName {
  return (MEASUREMENTS as readonly string[]).includes(name);
}

function isContestant(name: string): name is ContestantId {
  return Object.hasOwn(NAMES, name);
}

function endpointOf(text: string | undefined): string | undefined {
  const [endpoint, ...more] = list(text) ?? [];
  if (text === undefined) return undefined;
  if (endpoint === undefined || more.length > 0)
    throw new UsageError('--endpoints: give one, all clients of all contestants connect there');
  if (!URL.canParse(endpoint) || new URL(endpoint).protocol !== 'http:')
    throw new UsageError(
      `--endpoints: ${endpoint} is no http:// URL; not all contestants could be given keys or a password`,
    );
  return endpoint;
}

function parse(args: readonly string[]) {
  try {
    return parseArgs({
      args: [...args],
      options: {
        only: { type: 'string' },
        sizes: { type: 'string' },
        quick: { type: 'boolean', default: false },
        endpoints: { type: 'string' },
        contestants: { type: 'string' },
        rounds: { type: 'string' },
        fsync: { type: 'boolean', default: false },
        profile: { type: 'string' },
        out: { type: 'string' },
      },
    }).values;
  } catch (error) {
    throw new UsageError((error as Error).message);
  }
}

export function parseOptions(args: readonly string[], defaultOut: string): BenchOptions {
  const given = parse(args);
  const only = list(given.only) ?? MEASUREMENTS;
  for (const name of only) {
    if (!isMeasurement(name)) throw new UsageError(`--only: there is no measurement ${name}`);
  }
  const contestants = list(given.contestants);
  for (const name of contestants ?? []) {
    if (!isContestant(name)) throw new UsageError(`--contestants: there is no contestant ${name}`);
  }
  const asked = list(given.sizes)?.map((size) => positive('sizes', size));
  const sizes = asked ?? (given.quick ? QUICK_SIZES : SIZES);
  const changeSizes = asked || given.quick ? sizes : [...SIZES, CHANGE_N].sort((a, b) => a - b);
  return {
    only: only.filter(isMeasurement),
    sizes,
    changeSizes,
    quick: given.quick,
    endpoint: endpointOf(given.endpoints),
    fsync: given.fsync,
    contestants: contestants?.filter(isContestant),
    rounds: given.rounds === undefined ? undefined : positive('rounds', given.rounds),
    profile: given.profile,
    // Figures of a tiny run are nothing to keep.
    out: given.out ?? (given.quick ? `${defaultOut}/quick` : defaultOut),
  };
}
