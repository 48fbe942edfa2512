import test from 'ava';
import { dynamicSize } from '../../../src/elastic/chooser.ts';
import type { Member, Observed, Volunteer } from '../../../src/elastic/model.ts';
import { plan as makePlan } from '../../../src/elastic/plan.ts';
import { decodeKeys } from '../../../src/elastic/records.ts';
import { type ClusterStatus, makeStatus } from '../../../src/elastic/status.ts';
import { viewMembers } from '../../../src/elastic/view.ts';

const POLICY = { chooser: dynamicSize, minVoters: 3, deadAfterMs: Number.POSITIVE_INFINITY };

const H1: Member = {
  id: '26',
  name: 'h1',
  peerUrls: ['http://h1:2380'],
  clientUrls: ['http://h1:2379'],
  isLearner: false,
  status: {
    ageMs: 1,
    clusterId: '255',
    leader: '26',
    version: '3.4.23',
    dbSizeBytes: 1,
    raftIndex: 1,
    raftAppliedIndex: 1,
  },
};

function volunteer(host: string, holds?: string): Volunteer {
  const [peerUrls, clientUrls] = [[`http://${host}:2380`], [`http://${host}:2379`]];
  return { host, incarnation: 'i', peerUrls, clientUrls, proven: true, etcdVersion: '3.4.23', holds, since: 1 };
}

function status(volunteers: readonly Volunteer[], leaseAges: Readonly<Record<string, number>> = {}): ClusterStatus {
  const observed: Observed = {
    nowMs: 0,
    clusterId: '255',
    leader: '26',
    linearizable: true,
    alarms: [],
    members: [H1],
    volunteers,
    nominations: [],
    leaving: [],
    listed: [],
    idealSize: 3,
    changeRevision: 0,
  };
  const plan = makePlan(POLICY, observed, undefined);
  const view = { observed, keys: decodeKeys('/_elastic', []), statuses: new Map() };
  const members = viewMembers(POLICY, observed, plan.memory);
  return makeStatus(view, members, plan, new Map(Object.entries(leaseAges)));
}

function problemOf(state: ClusterStatus, host: string): string | undefined {
  return state.rows.find((row) => row.host === host)?.problem;
}

test('in the moment between a first etcd and its agent, nobody is called gone', (t) => {
  t.is(problemOf(status([]), 'h1'), 'its agent has yet to say that it is there');
  t.regex(problemOf(status([volunteer('h2')]), 'h1') ?? '', /its agent is gone/);
  t.is(problemOf(status([volunteer('h1', '26')]), 'h1'), undefined);
});

test('a host whose member was removed is told from a client, and one that renews nothing is dead', (t) => {
  const state = status([volunteer('h1', '26'), volunteer('h2', '27'), volunteer('h3', '28'), volunteer('h4')], {
    h2: 1,
    h3: 7,
    h4: 2,
  });
  t.deepEqual(
    state.rows.map(({ host, role }) => `${host} ${role}`),
    ['h1 voter', 'h2 client', 'h3 dead', 'h4 client'],
  );
  t.is(problemOf(state, 'h2'), 'its member 1b is none any more');
  t.is(problemOf(state, 'h3'), 'its member 1c is none any more; its agent has been silent for 7 s');
  t.is(problemOf(state, 'h4'), undefined);
});
