import test from 'ava';
import type { KeyValue } from '../../../src/core/store.ts';
import { hasConverged, isSettled } from '../../../src/elastic/convergence.ts';
import { decodeKeys, type ElasticKeys } from '../../../src/elastic/records.ts';
import { isToGo } from '../../../src/elastic/to-go.ts';

const PLAN = {
  controller: 'h1',
  generation: 4,
  idealSize: 1,
  wanted: { voters: ['h1'], learners: ['h2'] },
  steps: [],
  blocked: [],
  converged: true,
};
const REMOVAL = {
  generation: 3,
  kind: 'remove',
  cause: 'shrink',
  phase: 'open',
  host: 'h4',
  incarnation: '',
  peerUrls: [],
  memberId: '4',
  why: '',
};
const VOLUNTEER = { incarnation: 'i', peerUrls: [], clientUrls: [], proven: true, etcdVersion: '3.4.23' };

function keysOf(values: Readonly<Record<string, unknown>>): ElasticKeys {
  const kvs = Object.entries(values).map(
    ([key, value]): KeyValue => ({
      key: `/_elastic${key}`,
      value: Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)),
      createRevision: 1,
      modRevision: 1,
      version: 1,
      lease: '0',
    }),
  );
  return decodeKeys('/_elastic', kvs);
}

const BOTH = { '/volunteer/h1': VOLUNTEER, '/volunteer/h2': VOLUNTEER, '/plan': PLAN };

test('a host’s word that it is settled counts for the plan that it names, and no other', (t) => {
  t.true(hasConverged(keysOf({ ...BOTH, '/converged/h1': '4', '/converged/h2': '4' })));
  t.false(hasConverged(keysOf({ ...BOTH, '/converged/h1': '4', '/converged/h2': '3' })));
  t.false(hasConverged(keysOf({ ...BOTH, '/converged/h1': '4' })));
  const resized = { ...BOTH, '/chooser/dynamicsize/idealclustersize': '3' };
  t.false(hasConverged(keysOf({ ...resized, '/converged/h1': '4', '/converged/h2': '4' })));
  t.false(isSettled(keysOf(resized), 'h1', 'voter'));
  t.true(isSettled(keysOf(BOTH), 'h1', 'voter'));
  t.false(isSettled(keysOf(BOTH), 'h2', 'client'));
});

test('while the cluster shrinks, all that are too many are to go; else the one that is being removed, or told to leave', (t) => {
  const shrinking = { ...BOTH, '/plan': { ...PLAN, converged: false }, '/change': REMOVAL };
  const goes = (values: Readonly<Record<string, unknown>>) =>
    ['h1', 'h2', 'h3', 'h4'].filter((host) => isToGo(keysOf(values), host, host.slice(1)));
  t.deepEqual(goes(shrinking), ['h3', 'h4']);
  t.deepEqual(goes({ ...shrinking, '/change': { ...REMOVAL, phase: 'done' } }), ['h3', 'h4']);
  t.deepEqual(goes({ ...shrinking, '/change': { ...REMOVAL, cause: 'dead' } }), ['h4']);
  t.deepEqual(goes({ ...shrinking, '/chooser/dynamicsize/idealclustersize': '5' }), ['h4']);
  t.deepEqual(goes({ ...shrinking, '/plan': { ...PLAN, wanted: { voters: [], learners: [] }, converged: false } }), [
    'h4',
  ]);
  t.deepEqual(goes({ ...BOTH, '/leaving/h3': 'told' }), ['h3']);
  t.deepEqual(goes(BOTH), []);
});
