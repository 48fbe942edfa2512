import { readFileSync } from 'node:fs';
import test from 'ava';
import { dynamicSize, parseSize, voterCount } from '../../../src/elastic/chooser.ts';
import type { MemberView, Volunteer } from '../../../src/elastic/model.ts';
import { joinFault } from '../../../src/elastic/version.ts';

test('a size is a whole number from 1 to 99, and nothing else', (t) => {
  for (const [text = '', expected = ''] of rows('sizes.txt'))
    t.is(String(parseSize(text) ?? 'refused'), expected, text);
});

test('a version may join only where etcd itself allows it', (t) => {
  for (const [version = '', members = '', expected = ''] of rows('versions.txt')) {
    t.true(
      (joinFault(version, members.split(',')) ?? 'may join').includes(expected),
      `${version} to ${members}: ${expected}`,
    );
  }
});

test('the chooser keeps who serves, fills up by age, and keeps one spare', (t) => {
  for (const [hosts = '', size = '', voters = '', learner = ''] of rows('chooser.txt')) {
    const { volunteers, members } = parseHosts(hosts);
    const wanted = dynamicSize({ idealSize: Number(size), minVoters: 1 }, volunteers, members, undefined);
    t.is(`${wanted.voters.join()} ${wanted.learners.join() || '-'}`, `${voters} ${learner}`, `${hosts} for ${size}`);
    const shuffled = dynamicSize(
      { idealSize: Number(size), minVoters: 1 },
      volunteers.toReversed(),
      members.toReversed(),
      undefined,
    );
    t.deepEqual(shuffled, wanted, 'the order in which hosts are listed must not matter');
  }
});

test('the number of voters is odd and no more than there are hosts', (t) => {
  for (let hosts = 1; hosts <= 9; hosts++) {
    for (let ideal = 1; ideal <= 9; ideal++) {
      const count = voterCount(ideal, hosts);
      t.is(count % 2, 1);
      t.true(count <= Math.min(ideal, hosts) && count >= Math.min(ideal, hosts) - 1);
    }
  }
  t.is(voterCount(5, 0), 0);
});

/** Columns stand two spaces apart. */
function rows(file: string): string[][] {
  const text = readFileSync(new URL(`tables/${file}`, import.meta.url), 'utf8');
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  return lines.map((line) => line.trim().split(/\s{2,}/));
}

function parseHosts(text: string): { volunteers: Volunteer[]; members: MemberView[] } {
  const volunteers: Volunteer[] = [];
  const members: MemberView[] = [];
  for (const [since, word] of text.split(' ').entries()) {
    const [host = '', kind = ''] = word.split(':');
    if (!'DA'.includes(kind)) volunteers.push(volunteer(host, since));
    if (kind !== 'C') members.push(member(host, kind));
  }
  return { volunteers, members };
}

function volunteer(host: string, since: number): Volunteer {
  return { host, incarnation: 'i', peerUrls: [], clientUrls: [], proven: true, etcdVersion: '3.4.23', since };
}

function member(host: string, kind: string): MemberView {
  return {
    id: `id-${host}`,
    host,
    peerUrls: [],
    isLearner: kind === 'E',
    started: true,
    leader: kind === 'L',
    answers: !'DS'.includes(kind),
    agent: !'DA'.includes(kind),
    dead: kind === 'D',
    patienceMs: 30_000,
    leaving: false,
    lag: 0,
    answeringForMs: 10_000,
  };
}
