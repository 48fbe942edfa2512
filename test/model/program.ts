/** Random programs for a store, in terms that mean the same on any store: revisions count from the start, leases by their order. */
import fc from 'fast-check';
import type { Compare, Target } from '../../src/core/store.ts';

/** 0: no lease. n: the n-th granted (counted round and round). -1: one that nobody granted. */
export type LeaseRef = number;

export type OpPlan =
  | { readonly type: 'put'; readonly key: string; readonly value: string; readonly lease: LeaseRef }
  | { readonly type: 'delete'; readonly target: Target }
  | RangePlan;

export interface RangePlan {
  readonly type: 'range';
  readonly target: Target;
  readonly keysOnly?: boolean | undefined;
  readonly countOnly?: boolean | undefined;
  readonly limit?: number | undefined;
  readonly orderByCreate?: boolean | undefined;
  readonly newestFirst?: boolean | undefined;
  readonly revision?: number | undefined;
  readonly maxCreateRevision?: number | undefined;
}

export interface ComparePlan {
  readonly target: Target;
  readonly field: Compare['field'];
  readonly op: Compare['op'];
  /** A revision counted from the start, a version, or a lease. */
  readonly operand: number;
}

export type Command =
  | {
      readonly do: 'txn';
      readonly compares: readonly ComparePlan[];
      readonly success: OpPlan[];
      readonly failure: OpPlan[];
    }
  | { readonly do: 'range'; readonly range: RangePlan }
  | { readonly do: 'pages'; readonly target: Target; readonly limit: number; readonly revision: number | undefined }
  | { readonly do: 'grant'; readonly ttl: number }
  | { readonly do: 'revoke' | 'keepAlive'; readonly lease: LeaseRef }
  | { readonly do: 'timeToLive'; readonly lease: LeaseRef; readonly withKeys: boolean }
  | { readonly do: 'watch'; readonly target: Target; readonly start: number }
  | { readonly do: 'cancel'; readonly watch: number }
  | { readonly do: 'compact'; readonly revision: number };

/** Few, so that programs collide. Under a dozen also because etcd's sort by create revision is only then a stable one. */
const KEYS = ['a', 'a/', 'a/b', 'a/b/c', 'a/\uffee', 'a/\u{1f600}', 'ab', 'b', 'b/x', '\u0000'];
const PREFIXES = ['', 'a', 'a/', 'a/b', 'b/', 'c'];

const key = fc.constantFrom(...KEYS);
const target: fc.Arbitrary<Target> = fc.oneof(fc.record({ key }), fc.record({ prefix: fc.constantFrom(...PREFIXES) }));
const revision = fc.integer({ min: 1, max: 16 });
const lease = fc.oneof(
  { weight: 6, arbitrary: fc.integer({ min: 1, max: 3 }) },
  { weight: 1, arbitrary: fc.constant(-1) },
);
const maybeLease = fc.oneof({ weight: 2, arbitrary: fc.constant(0) }, { weight: 1, arbitrary: lease });

const range: fc.Arbitrary<RangePlan> = fc.record(
  {
    type: fc.constant('range' as const),
    target,
    keysOnly: fc.boolean(),
    countOnly: fc.boolean(),
    limit: fc.integer({ min: 0, max: 4 }),
    orderByCreate: fc.boolean(),
    newestFirst: fc.boolean(),
    revision,
    maxCreateRevision: revision,
  },
  { requiredKeys: ['type', 'target'] },
);

const put = fc.record({
  type: fc.constant('put' as const),
  key,
  value: fc.constantFrom('', 'x', '\u{1f600}'),
  lease: maybeLease,
});
const remove = fc.record({ type: fc.constant('delete' as const), target });
const op: fc.Arbitrary<OpPlan> = fc.oneof(
  { weight: 4, arbitrary: put },
  { weight: 2, arbitrary: remove },
  { weight: 2, arbitrary: range },
);

const order = fc.constantFrom('=' as const, '!=' as const, '<' as const, '>' as const);
const compare: fc.Arbitrary<ComparePlan> = fc.oneof(
  fc.record({
    target,
    field: fc.constantFrom('create' as const, 'mod' as const),
    op: order,
    operand: fc.integer({ min: 0, max: 16 }),
  }),
  fc.record({ target, field: fc.constant('version' as const), op: order, operand: fc.integer({ min: 0, max: 3 }) }),
  // Which of two lease ids is the greater is chance, on a real etcd.
  fc.record({
    target,
    field: fc.constant('lease' as const),
    op: fc.constantFrom('=' as const, '!=' as const),
    operand: maybeLease,
  }),
);

const txn = fc.record({
  do: fc.constant('txn' as const),
  compares: fc.array(compare, { maxLength: 2 }),
  success: fc.array(op, { maxLength: 4 }),
  failure: fc.array(op, { maxLength: 3 }),
});
/** What no transaction can be refused for: it makes history. */
const simplePut = put.map(
  (plan): Command => ({ do: 'txn', compares: [], success: [{ ...plan, lease: 0 }], failure: [] }),
);

const command: fc.Arbitrary<Command> = fc.oneof(
  { weight: 6, arbitrary: txn },
  { weight: 4, arbitrary: simplePut },
  { weight: 3, arbitrary: range.map((plan): Command => ({ do: 'range', range: plan })) },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('pages' as const),
      target,
      limit: fc.integer({ min: 1, max: 3 }),
      revision: fc.option(revision, { nil: undefined }),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constant('grant' as const), ttl: fc.constantFrom(100, 600, 9_000_000_001) }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constantFrom('revoke' as const, 'keepAlive' as const), lease }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('timeToLive' as const), lease, withKeys: fc.boolean() }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('watch' as const), target, start: revision }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('cancel' as const), watch: fc.integer({ min: 1, max: 3 }) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('compact' as const), revision }) },
);

export const program = fc.array(command, { minLength: 5, maxLength: 40, size: 'max' });
