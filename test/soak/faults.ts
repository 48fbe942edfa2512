/** Everything that befalls members, network, clients and keys, each with its end. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Chance } from '../simulation/chance.ts';
import type { EtcdProcess } from '../support/etcd-process.ts';
import { etcdctl } from '../support/etcdctl.ts';
import type { FleetProcess } from './fleet.ts';
import type { History } from './history.ts';
import type { Judge } from './judge.ts';
import { type Pulse, setFull } from './pulse.ts';
import type { Recorder } from './recorder.ts';

export interface FaultWorld {
  readonly chance: Chance;
  readonly members: readonly EtcdProcess[];
  readonly processes: readonly FleetProcess[];
  readonly directories: readonly string[];
  readonly pulse: Pulse;
  readonly judge: Judge;
  readonly history: History;
  readonly recorders: readonly Recorder[];
}

export interface Fault {
  readonly kind: string;
  readonly of: string;
  /** Does it, lasts, and undoes it. */
  run(): Promise<void>;
}

/** The connections are dead until they are found out: by a keepalive within a quarter of the ttl, else by HTTP/2's pings. */
const ORPHANS_NOTICED_MS = 9_000;

/** How often each happens. At most one of the first group in a round: a majority of members is to be left, but for where it is not. */
const MEMBERS = {
  'member SIGKILL': 3,
  'leader SIGKILL': 3,
  'member restart': 2,
  'member SIGSTOP': 3,
  'leader SIGSTOP': 3,
  'quorum lost': 1,
  'store full': 1,
  none: 5,
};
const OTHERS = {
  cut: 4,
  'black hole': 4,
  'half-open': 3,
  delay: 3,
  refuse: 2,
  'client SIGKILL': 4,
  'client SIGSTOP': 4,
  'client blocked': 2,
  'registration deleted': 3,
  'lease revoked': 2,
  'lock deleted': 2,
  'marker deleted': 2,
  'foreign key': 2,
  compaction: 4,
};

export function drawFaults(world: FaultWorld): Fault[] {
  const { chance } = world;
  const member = chance.weighted(MEMBERS);
  const faults = member === 'none' ? [] : [memberFault(world, member)];
  const free = [...world.processes];
  for (let count = chance.int(1, 4); count > 0; count -= 1) {
    const kind = chance.weighted(OTHERS);
    // Each process has its own trouble, so that one's end is not taken for another's.
    const [process] = free.length > 0 ? free.splice(chance.int(0, free.length - 1), 1) : [];
    if (process) faults.push(otherFault(world, kind, process));
  }
  return faults;
}

function memberFault(world: FaultWorld, kind: Exclude<keyof typeof MEMBERS, 'none'>): Fault {
  const { chance, members, pulse } = world;
  const ms = chance.int(300, 5_000);
  const [one, two] = chance.is(0.5) ? [members[0], members[1]] : [members[1], members[2]];
  const chosen = () => (kind.startsWith('leader') && pulse.leader) || (chance.pick(members) as EtcdProcess);
  let name = '';
  return {
    kind,
    get of() {
      return `${name} for ${ms} ms`;
    },
    run: () =>
      outage(world, async () => {
        const member = chosen();
        name = member.name;
        if (kind === 'member restart') return member.restart();
        if (kind === 'store full') {
          await setFull(member, true);
          await sleep(ms);
          return setFull(member, false);
        }
        if (kind === 'quorum lost') {
          for (const it of [one, two]) it?.pause();
          await sleep(ms);
          for (const it of [one, two]) it?.resume();
          return;
        }
        if (kind.endsWith('SIGKILL')) {
          await member.kill();
          await sleep(ms);
          return member.start();
        }
        member.pause();
        await sleep(ms);
        member.resume();
      }),
  };
}

/** Whoever was connected there had no answer meanwhile. */
async function outage({ judge }: FaultWorld, work: () => Promise<void>): Promise<void> {
  const stretch = { fromMs: Date.now(), untilMs: Number.POSITIVE_INFINITY };
  judge.memberOutages.push(stretch);
  try {
    await work();
  } finally {
    stretch.untilMs = Date.now();
  }
}

function otherFault(world: FaultWorld, kind: keyof typeof OTHERS, process: FleetProcess): Fault {
  const isOfAProcess = kind in NETWORK || kind.startsWith('client');
  const directory = world.chance.pick(world.directories);
  const ms = world.chance.int(300, 7_000);
  const delayMs = world.chance.int(50, 600);
  const pick = world.chance.next();
  const run = async () => {
    if (kind in NETWORK) return networkFault(process, kind as keyof typeof NETWORK, ms, delayMs);
    if (kind.startsWith('client')) return clientFault(world, process, kind, ms);
    return storeFault(world, kind, directory, pick);
  };
  return { kind, of: isOfAProcess ? process.plan.name : directory, run };
}

async function troubled(process: FleetProcess, work: () => Promise<void>, afterwardsMs = 0): Promise<void> {
  const trouble: (typeof process.troubles)[number] = { fromMs: Date.now(), untilMs: undefined };
  process.troubles.push(trouble);
  try {
    await work();
  } finally {
    trouble.untilMs = Date.now() + afterwardsMs;
  }
}

const NETWORK = { cut: 0, 'black hole': 0, 'half-open': 0, delay: 0, refuse: 0 };

function networkFault(process: FleetProcess, kind: keyof typeof NETWORK, ms: number, delayMs: number): Promise<void> {
  const each = (act: (proxy: FleetProcess['proxies'][number]) => void) => process.proxies.forEach(act);
  const work = async () => {
    if (kind === 'cut') return each((proxy) => proxy.cut());
    if (kind === 'half-open') return each((proxy) => proxy.orphan());
    if (kind === 'black hole') each((proxy) => proxy.blackhole(true));
    if (kind === 'delay') each((proxy) => proxy.delay(delayMs));
    if (kind === 'refuse') {
      each((proxy) => proxy.refuse(true));
      each((proxy) => proxy.cut());
    }
    await sleep(ms);
    each((proxy) => proxy.heal());
  };
  return troubled(process, work, kind === 'half-open' ? ORPHANS_NOTICED_MS : 0);
}

function clientFault(world: FaultWorld, process: FleetProcess, kind: string, ms: number): Promise<void> {
  const { judge } = world;
  return troubled(process, async () => {
    if (kind === 'client SIGKILL') {
      judge.silenced(process);
      await process.kill();
      await sleep(ms / 4);
      process.start();
      return;
    }
    if (kind === 'client blocked') {
      process.order({ do: 'block', ms });
      await sleep(ms);
      return;
    }
    const silenced = judge.silenced(process);
    process.pause();
    await sleep(ms);
    silenced.untilMs = Date.now();
    process.resume();
  });
}

/** What an operator does, by etcdctl at whichever member answers. */
async function storeFault(world: FaultWorld, kind: string, directory: string, pick: number): Promise<void> {
  const { judge, history, members, recorders } = world;
  const endpoints = members.map(({ endpoint }) => endpoint).join(',');
  const ctl = (...args: string[]) => etcdctl(endpoints, '--command-timeout=3s', ...args).catch(() => '');
  const standing = history
    .directoryAt(directory, history.revision)
    .filter(({ value }) => value?.startsWith('services'));
  const victim = standing[Math.floor(pick * standing.length)];
  if (kind === 'compaction') {
    const { revision } = history;
    for (const recorder of recorders) recorder.compacted = revision;
    await ctl('compact', String(revision));
  } else if (kind === 'foreign key') {
    await ctl('put', `${directory}/theirs`, 'x');
    await ctl('put', `${directory}//unnameable`, 'x');
    await sleep(500);
    await ctl('del', `${directory}/theirs`);
    await ctl('del', `${directory}//unnameable`);
  } else if (kind === 'marker deleted') await ctl('del', '--prefix', `/_watcherDir${directory}//`);
  else if (kind === 'lock deleted') {
    const [first] = (await ctl('get', '--prefix', `/_watcherLock/names${directory}//`, '--keys-only')).split('\n');
    if (first) await ctl('del', first);
  } else if (victim) {
    judge.interferences.push({ key: victim.key, atMs: Date.now() });
    if (kind === 'registration deleted') await ctl('del', victim.key);
    else {
      const lease = /"Lease" : (\d+)/.exec(await ctl('get', victim.key, '-w', 'fields'))?.[1];
      if (lease) await ctl('lease', 'revoke', BigInt(lease).toString(16));
    }
  }
}
