import test from 'ava';
import { checkPlan } from '../../../src/elastic/check-plan.ts';
import { dynamicSize } from '../../../src/elastic/chooser.ts';
import { EMPTY_MEMORY } from '../../../src/elastic/memory.ts';
import type { Change, Member, Observed, Plan, Policy, Step, Volunteer } from '../../../src/elastic/model.ts';

const POLICY: Policy = { chooser: dynamicSize, minVoters: 3, deadAfterMs: 30_000 };

test('what is safe passes', (t) => {
  const observed = cluster({ voters: ['h1', 'h2', 'h3'], clients: ['h4'] });
  t.deepEqual(check(observed, record(observed, { kind: 'join', cause: 'grow', host: 'h4' })), []);
  t.deepEqual(check(observed, record(observed, { kind: 'remove', cause: 'leave', host: 'h3', memberId: 'id-h3' })), []);
});

test('a removal that leaves less than a quorum alive is refused', (t) => {
  const observed = cluster({ voters: ['h1', 'h2', 'h3'], silent: ['h2'] });
  refused(
    t,
    check(observed, record(observed, { kind: 'remove', cause: 'leave', host: 'h3', memberId: 'id-h3' })),
    '1 of 2 voters',
  );
});

test('the last voter is never removed', (t) => {
  const observed = cluster({ voters: ['h1'] });
  refused(
    t,
    check(observed, record(observed, { kind: 'remove', cause: 'leave', host: 'h1', memberId: 'id-h1' })),
    'last voter',
  );
});

test('the living are not removed as dead', (t) => {
  const observed = cluster({ voters: ['h1', 'h2', 'h3'], clients: ['h4'] });
  refused(
    t,
    check(observed, record(observed, { kind: 'remove', cause: 'dead', host: 'h3', memberId: 'id-h3' })),
    'h3 is alive',
  );
});

test('a dead voter without a replacement is not removed below minVoters', (t) => {
  const observed = cluster({ voters: ['h1', 'h2', 'h3'], silent: ['h3'] });
  refused(
    t,
    check(observed, record(observed, { kind: 'remove', cause: 'dead', host: 'h3', memberId: 'id-h3' })),
    'minVoters',
  );
});

test('a second change is refused while one is in flight', (t) => {
  const change = draft({ kind: 'join', cause: 'grow', host: 'h4' }, 1);
  const observed = { ...cluster({ voters: ['h1', 'h2', 'h3'], clients: ['h4', 'h5'] }), change };
  refused(t, check(observed, record(observed, { kind: 'join', cause: 'grow', host: 'h5' })), 'in flight already');
  refused(t, check(observed, { do: 'removeMember', host: 'h3', memberId: 'id-h3', why: '' }), 'never of a voter');
});

test('a change must follow the last one', (t) => {
  const observed = {
    ...cluster({ voters: ['h1'], clients: ['h2'] }),
    change: draft({ kind: 'join', cause: 'grow', host: 'h2' }, 7, 'done'),
  };
  const stale: Step = { do: 'record', change: draft({ kind: 'join', cause: 'grow', host: 'h2' }, 7), why: '' };
  refused(t, check(observed, stale), 'generation');
});

test('only a learner that has just answered is promoted, and to two voters only on the way to three', (t) => {
  const promote = { kind: 'promote', cause: 'grow', host: 'h2', memberId: 'id-h2' } as const;
  const alone = cluster({ voters: ['h1'], learners: ['h2'] });
  refused(t, check(alone, record(alone, promote)), 'no third');
  const withThird = cluster({ voters: ['h1'], learners: ['h2'], clients: ['h3'] });
  t.deepEqual(check(withThird, record(withThird, promote)), []);
  const silent = cluster({ voters: ['h1'], learners: ['h2'], clients: ['h3'], silent: ['h2'] });
  refused(t, check(silent, record(silent, promote)), 'has not answered');
  const voter = cluster({ voters: ['h1', 'h2', 'h3'] });
  refused(t, check(voter, record(voter, promote)), 'only a learner');
});

test('a second learner is refused', (t) => {
  const observed = cluster({ voters: ['h1', 'h2', 'h3'], learners: ['h4'], clients: ['h5'] });
  refused(t, check(observed, record(observed, { kind: 'join', cause: 'grow', host: 'h5' })), 'a learner already');
});

test('an alarm or a lost quorum freezes everything', (t) => {
  const observed = cluster({ voters: ['h1', 'h2', 'h3'], clients: ['h4'] });
  const step = record(observed, { kind: 'join', cause: 'grow', host: 'h4' });
  refused(t, check({ ...observed, alarms: ['NOSPACE'] }, step), 'alarm');
  refused(t, check({ ...observed, linearizable: false }, step), 'quorum');
});

test('a leader moves only to a live voter, and only away from one that goes', (t) => {
  const change = draft({ kind: 'remove', cause: 'leave', host: 'h1', memberId: 'id-h1' }, 1);
  const observed = { ...cluster({ voters: ['h1', 'h2', 'h3'], silent: ['h3'] }), change };
  t.deepEqual(check(observed, { do: 'moveLeader', to: 'id-h2', why: '' }), []);
  refused(t, check(observed, { do: 'moveLeader', to: 'id-h3', why: '' }), 'no live voter');
  refused(t, check(observed, { do: 'moveLeader', to: 'id-h1', why: '' }), 'away from');
});

test('an end that has not come is not recorded', (t) => {
  const observed = cluster({ voters: ['h1', 'h2', 'h3'], learners: ['h4'] });
  const removal = draft({ kind: 'remove', cause: 'leave', host: 'h3', memberId: 'id-h3' }, 1);
  refused(
    t,
    check({ ...observed, change: removal }, { do: 'finish', phase: 'done', host: 'h3', why: '' }),
    'still there',
  );
  const promotion = draft({ kind: 'promote', cause: 'grow', host: 'h4', memberId: 'id-h4' }, 1);
  refused(
    t,
    check({ ...observed, change: promotion }, { do: 'finish', phase: 'done', host: 'h4', why: '' }),
    'still one',
  );
  refused(
    t,
    check({ ...observed, change: promotion }, { do: 'finish', phase: 'failed', host: 'h4', why: '' }),
    'withdrawn',
  );
});

test('what a chooser of the user’s own wants is judged too', (t) => {
  const observed = cluster({ voters: ['h1'] });
  const plan = (voters: string[], learners: string[] = []): Plan => ({
    ...empty(observed),
    wanted: { voters, learners },
  });
  refused(t, checkPlan(POLICY, observed, plan(['h1', 'h1'])), 'twice');
  refused(t, checkPlan(POLICY, observed, plan(['h9'])), 'unknown hosts');
  refused(t, checkPlan(POLICY, observed, plan(['h1'], ['h2', 'h3'])), 'one learner');
});

function refused(
  t: { true(actual: boolean, message: string): unknown },
  faults: readonly string[],
  expected: string,
): void {
  t.true(
    faults.some((fault) => fault.includes(expected)),
    `expected "${expected}" among: ${faults.join('; ') || 'nothing'}`,
  );
}

function check(observed: Observed, step: Step): readonly string[] {
  return checkPlan(POLICY, observed, { ...empty(observed), steps: [step] });
}

function empty(observed: Observed): Plan {
  const generation = (observed.change?.generation ?? 0) + 1;
  const wanted = { voters: observed.members.filter((one) => !one.isLearner).map((one) => one.name), learners: [] };
  return { generation, wanted, steps: [], blocked: [], converged: false, memory: EMPTY_MEMORY };
}

type Draft = Pick<Change, 'kind' | 'cause' | 'host' | 'memberId'>;

function draft(what: Draft, generation: number, phase: Change['phase'] = 'open'): Change {
  return { ...what, generation, phase, incarnation: 'i', peerUrls: [`http://${what.host}:2380`], why: '' };
}

function record(observed: Observed, what: Draft): Step {
  return { do: 'record', change: draft(what, (observed.change?.generation ?? 0) + 1), why: '' };
}

interface Hosts {
  readonly voters: readonly string[];
  readonly learners?: readonly string[];
  readonly clients?: readonly string[];
  readonly silent?: readonly string[];
}

function cluster({ voters, learners = [], clients = [], silent = [] }: Hosts): Observed {
  const leader = `id-${voters[0]}`;
  const raft = { version: '3.4.23', dbSizeBytes: 1, raftIndex: 10, raftAppliedIndex: 10 };
  const member = (name: string): Member => ({
    id: `id-${name}`,
    name,
    peerUrls: [`http://${name}:2380`],
    clientUrls: [],
    isLearner: learners.includes(name),
    status: silent.includes(name) ? undefined : { ageMs: 0, clusterId: 'c', leader, ...raft },
  });
  const hosts = [...voters, ...learners, ...clients].filter((host) => !silent.includes(host));
  return {
    nowMs: 0,
    clusterId: 'c',
    leader,
    linearizable: true,
    alarms: [],
    members: [...voters, ...learners].map(member),
    volunteers: hosts.map(volunteer),
    nominations: [],
    leaving: [],
    listed: [],
    idealSize: 5,
    changeRevision: 1,
  };
}

function volunteer(host: string): Volunteer {
  const peerUrls = [`http://${host}:2380`];
  return { host, incarnation: 'i', peerUrls, clientUrls: [], proven: true, etcdVersion: '3.4.23', since: 1 };
}
