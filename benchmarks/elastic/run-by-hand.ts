import { setTimeout as sleep } from 'node:timers/promises';
import { until } from '../../test/support/wait.ts';
import { Writer } from '../../test/support/writer.ts';
import { ByHand, type HandMember, logOf } from './by-hand.ts';
import { electedMs, loneElectionMs } from './chance.ts';
import { type Note, timed } from './steps.ts';

/** Longer than what etcd asks of a voter's connection before it takes the next member. */
export const SETTLED_MS = 6_000;

type Five = readonly [HandMember, HandMember, HandMember, HandMember, HandMember];

async function fiveOf(hand: ByHand): Promise<Five> {
  const members = [];
  for (let count = 0; count < 5; count++) members.push(await hand.prepare());
  return members as unknown as Five;
}

export async function bootByHand(note: Note): Promise<void> {
  const hand = new ByHand();
  try {
    const member = await hand.prepare();
    note('boot of the first', await timed(() => hand.boot(member)), loneElectionMs(logOf(member)));
    await hand.stop(member);
    note('restart of an only one', await timed(() => hand.restart(member)), loneElectionMs(logOf(member)));
  } finally {
    await hand.close();
  }
}

/** One to three, with deaths. */
export async function smallByHand(note: Note): Promise<void> {
  const hand = new ByHand();
  try {
    const [m1, m2, m3, m4, m5] = await fiveOf(hand);
    await hand.boot(m1);
    note('a learner joins', await timed(() => hand.join(m2, m1)));
    await sleep(SETTLED_MS);
    const grow = async () => {
      await hand.promote(m2, m1);
      await hand.join(m3, m1);
      await hand.promote(m3, m1);
    };
    note('1 to 3', await timed(grow));
    await sleep(SETTLED_MS);

    const three = [m1, m2, m3];
    const leader = await hand.leaderOf(three);
    const follower = three.find((member) => member !== leader) ?? m3;
    await hand.kill(follower);
    note('etcd of a follower killed, restarted in place', await timed(() => hand.restart(follower)));
    await sleep(SETTLED_MS);
    const killedMs = Date.now();
    await hand.kill(leader);
    const deadMs = Date.now();
    const ms = await timed(() => hand.restart(leader));
    const electionMs = (electedMs(three.map(logOf), killedMs) ?? deadMs) - deadMs;
    note('etcd of the leader killed, restarted in place', ms, Math.max(0, electionMs));
    await sleep(SETTLED_MS);
    const lead = await hand.leaderOf(three);
    const [dead, third] = three.filter((member) => member !== lead) as [HandMember, HandMember];
    await hand.kill(dead);
    const replace = async () => {
      await hand.remove(dead, lead);
      await hand.join(m4, lead);
      await hand.promote(m4, lead);
    };
    note('dead one replaced', await timed(replace));
    await hand.join(m5, lead);
    await sleep(SETTLED_MS);
    await hand.kill(m4);
    const takeOver = async () => {
      await hand.remove(m4, lead);
      await hand.promote(m5, lead);
    };
    note('dead one replaced by the spare', await timed(takeOver));
    await sleep(SETTLED_MS);
    await gapsByHand(hand, [lead, third, m5], note);
  } finally {
    await hand.close();
  }
}

async function gapsByHand(hand: ByHand, voters: readonly HandMember[], note: Note): Promise<void> {
  const leader = await hand.leaderOf(voters);
  const heir = voters.find((member) => member !== leader) ?? leader;
  const writer = new Writer(() => voters.map(({ clientUrl }) => clientUrl));
  try {
    await until(() => writer.acknowledged.length > 100, 'writes');
    writer.takeGap();
    await hand.admin.moveLeader(leader.clientUrl, heir.id, 1_000);
    await sleep(1_000);
    note('write gap: leader leaves its place', writer.takeGap());
    const killedMs = Date.now();
    await hand.kill(heir);
    await until(async () => (await hand.leaderOf(voters)) !== heir, 'another leader');
    await sleep(1_000);
    const electionMs = (electedMs(voters.map(logOf), killedMs) ?? killedMs) - killedMs;
    note('write gap: leader killed', writer.takeGap(), electionMs);
  } finally {
    await writer.stop();
  }
}

/** One to five and back. */
export async function largeByHand(note: Note): Promise<void> {
  const hand = new ByHand();
  try {
    const [m1, ...others] = await fiveOf(hand);
    await hand.boot(m1);
    const [m2] = others;
    await hand.join(m2, m1);
    await sleep(SETTLED_MS);
    const grow = async () => {
      for (const member of others) {
        if (member !== m2) await hand.join(member, m1);
        await hand.promote(member, m1);
      }
    };
    note('1 to 5', await timed(grow));
    await sleep(SETTLED_MS);
    const shrink = async () => {
      for (const member of [...others].reverse()) await hand.remove(member, m1);
    };
    note('5 to 1', await timed(shrink));
  } finally {
    await hand.close();
  }
}
