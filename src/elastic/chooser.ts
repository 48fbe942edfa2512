import { SIZE_MAX, SIZE_MIN } from './limits.ts';
import type { Chooser, MemberView, Volunteer } from './model.ts';

/** The largest odd number of voters that `ideal` and the hosts at hand allow: an even one stands no more failures, and votes more. */
export function voterCount(ideal: number, hosts: number): number {
  const most = Math.min(ideal, hosts);
  return most % 2 === 1 ? most : Math.max(most - 1, 0);
}

/** A size as an operator may give it, or `undefined`. Text is taken as etcdctl stores it: digits alone. */
export function parseSize(text: string): number | undefined {
  const trimmed = text.trim();
  if (!/^[0-9]{1,2}$/.test(trimmed)) return undefined;
  const size = Number(trimmed);
  return size >= SIZE_MIN && size <= SIZE_MAX ? size : undefined;
}

/**
 * Keeps who serves, longest first, and fills up to the ideal size with whoever volunteered first; one further volunteer is kept as a
 * warm learner. Ties go by name, so that every controller chooses alike.
 */
export const dynamicSize: Chooser = (policy, volunteers, members) => {
  const since = new Map(volunteers.map((volunteer) => [volunteer.host, volunteer.since]));
  const staying = members.filter((member) => !member.dead && !member.leaving);
  const voters = staying.filter((member) => !member.isLearner).sort((a, b) => bySeniority(a, b, since));
  const voting = new Set(voters.map((member) => member.host));
  const learning = new Set(staying.filter((member) => member.isLearner).map((member) => member.host));
  const waiting = volunteers
    .filter((volunteer) => !voting.has(volunteer.host))
    .sort((a, b) => byTurn(a, b, learning))
    .map((volunteer) => volunteer.host);
  const ranked = [...voting, ...waiting];
  const count = voterCount(policy.idealSize, ranked.length);
  const spare = [...waiting, ...voting].find((host) => since.has(host) && !ranked.slice(0, count).includes(host));
  return { voters: ranked.slice(0, count), learners: spare === undefined ? [] : [spare] };
};

/** Who serves without an agent cannot be told to stop, so it stays; then the leader; the silent come last; then age, then name. */
function bySeniority(a: MemberView, b: MemberView, since: ReadonlyMap<string, number>): number {
  const rank = (member: MemberView) => (member.answers ? (member.agent ? (member.leader ? 1 : 2) : 0) : 3);
  const age = (member: MemberView) => since.get(member.host) ?? Number.MAX_SAFE_INTEGER;
  return rank(a) - rank(b) || age(a) - age(b) || compareText(a.host, b.host);
}

/** Who is a learner already is first in line. */
function byTurn(a: Volunteer, b: Volunteer, learning: ReadonlySet<string>): number {
  const rank = (volunteer: Volunteer) => (learning.has(volunteer.host) ? 0 : 1);
  return rank(a) - rank(b) || a.since - b.since || compareText(a.host, b.host);
}

function compareText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
