import test from 'ava';
import { decideStart, type StartDecision, type StartFacts } from '../../../src/elastic/start-decision.ts';

const NOTHING: StartFacts = {
  noServer: false,
  hasLog: false,
  remembers: false,
  wasMember: false,
  hasEndpoints: false,
  hasSeeds: false,
  bootstrap: false,
  isLocal: false,
};

const TABLE: readonly (readonly [string, Partial<StartFacts>, StartDecision['start']])[] = [
  ['alone, on this machine only', { isLocal: true }, 'bootstrap'],
  ['alone, on URLs that others reach', {}, 'refuse'],
  ['alone, told to found', { bootstrap: true }, 'bootstrap'],
  ['with seeds', { hasSeeds: true, hasEndpoints: true, isLocal: true }, 'connect'],
  ['with seeds that are all itself', { hasSeeds: true }, 'connect'],
  ['with seeds, told to found', { hasSeeds: true, hasEndpoints: true, bootstrap: true }, 'ask-then-bootstrap'],
  ['with data', { hasLog: true, remembers: true, wasMember: true }, 'restart'],
  [
    'with data, whatever its seeds say',
    { hasLog: true, remembers: true, hasSeeds: true, hasEndpoints: true, bootstrap: true },
    'restart',
  ],
  ['with data, its state lost', { hasLog: true }, 'restart'],
  ['its data lost, others known', { remembers: true, wasMember: true, hasEndpoints: true, isLocal: true }, 'connect'],
  [
    'its data lost, told to found, others known',
    { remembers: true, wasMember: true, hasEndpoints: true, bootstrap: true },
    'connect',
  ],
  ['its data lost, nobody known', { remembers: true, wasMember: true, isLocal: true }, 'refuse'],
  ['its data lost, nobody known, told to found', { remembers: true, wasMember: true, bootstrap: true }, 'refuse'],
  ['after it has left, nobody known', { remembers: true, isLocal: true }, 'refuse'],
  ['a client only', { noServer: true, hasSeeds: true, hasLog: true }, 'connect'],
];

test('a host begins as its data, its memory and its options say, in that order', (t) => {
  for (const [what, facts, expected] of TABLE) t.is(decideStart({ ...NOTHING, ...facts }).start, expected, what);
});

test('a refusal says what to do', (t) => {
  const decision = decideStart({ ...NOTHING, remembers: true, wasMember: true });
  t.regex(decision.start === 'refuse' ? decision.why : '', /give seeds to join it again/);
});
