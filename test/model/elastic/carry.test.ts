import test from 'ava';
import { afterNews, afterRecord, afterRemoval, aged } from '../../../src/elastic/carry.ts';
import { CARRY_MS } from '../../../src/elastic/limits.ts';
import type { Change, Member, Observed } from '../../../src/elastic/model.ts';
import { decodeKeys } from '../../../src/elastic/records.ts';

function member(id: string, ageMs: number): Member {
  const status = { ageMs, clusterId: 'c', leader: 'm1', version: '3.4.23' };
  const sizes = { dbSizeBytes: 1, raftIndex: 1, raftAppliedIndex: 1 };
  return { id, name: id, peerUrls: [], clientUrls: [], isLearner: false, status: { ...status, ...sizes } };
}

const LOOK: Observed = {
  nowMs: 1_000,
  clusterId: 'c',
  leader: 'm1',
  linearizable: true,
  alarms: [],
  members: [member('m1', 10), member('m2', 20)],
  volunteers: [],
  nominations: [],
  leaving: [],
  listed: [],
  idealSize: 3,
  changeRevision: 5,
};

test('what is known from a look grows older with each step, and is forgotten when all of them together took too long', (t) => {
  const first = aged(LOOK, 1_100);
  t.deepEqual(
    first?.members.map(({ status }) => status?.ageMs),
    [110, 120],
  );
  t.is(first?.nowMs, 1_100);
  const change: Change = {
    generation: 1,
    kind: 'remove',
    cause: 'shrink',
    phase: 'open',
    host: 'm2',
    incarnation: '',
    peerUrls: [],
    why: '',
  };
  const recorded = first && afterRecord(first, change, 6);
  t.is(recorded?.changeRevision, 6);
  const second = recorded && aged(recorded, 1_000 + CARRY_MS);
  t.deepEqual(
    second?.members.map(({ status }) => status?.ageMs),
    [10 + CARRY_MS, 20 + CARRY_MS],
  );
  t.is(second && aged(second, 1_001 + CARRY_MS), undefined);
  t.is(aged(LOOK, 999), undefined);
});

test('news of the keys count where they are no older than the look, and the record is still the same', (t) => {
  const looked = { ...LOOK, keysRevision: 10, listed: ['m1', 'm2'] };
  const keys = { ...decodeKeys('/_elastic', []), changeRevision: 5, endpoints: new Map([['m1', ['http://m1:2379']]]) };
  t.deepEqual(afterNews(looked, keys, 11)?.listed, ['m1']);
  t.is(afterNews(looked, keys, 11)?.idealSize, 3);
  t.is(afterNews(looked, keys, 9), undefined);
  t.is(afterNews(looked, { ...keys, changeRevision: 6 }, 11), undefined);
  t.is(afterNews(LOOK, keys, 11), undefined);
});

test('a member whose removal was answered is none any more', (t) => {
  t.deepEqual(
    afterRemoval(LOOK, 'm2').members.map(({ id }) => id),
    ['m1'],
  );
});
