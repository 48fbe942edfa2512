/** A fleet process: `node main.js KIND`, orders on stdin, answers on stdout. */
import { writeFileSync } from 'node:fs';
import { Session } from 'node:inspector/promises';
import { createInterface } from 'node:readline';
import { Fleet } from './fleet.ts';
import type { OpenMember } from './member.ts';
import type { Order } from './protocol.ts';
import { register } from './register.ts';
import { size } from './size.ts';
import { watches } from './watches.ts';

/** For orders that need no fleet. */
const none: OpenMember = () => Promise.reject(new Error('this process has no fleet'));

const KINDS: Readonly<Record<string, () => Promise<OpenMember>>> = {
  alone: async () => none,
  'ours-direct': async () => {
    const { OurMember } = await import('./ours.ts');
    return (options) => OurMember.open('direct', options);
  },
  'ours-mirror': async () => {
    const { OurMember } = await import('./ours.ts');
    return (options) => OurMember.open('mirror', options);
  },
  etcd3: async () => {
    const { RawEtcd3Member } = await import('./raw-etcd3.ts');
    return (options) => RawEtcd3Member.open(options);
  },
  moleculer: async () => {
    const { MoleculerMember } = await import('./moleculer.ts');
    return (options) => MoleculerMember.open(options);
  },
  zookeeper: async () => {
    const { ZooKeeperMember } = await import('./zookeeper.ts');
    return (options) => ZooKeeperMember.open(options);
  },
};

async function profile(session: Session, file: string | undefined): Promise<object> {
  if (file === undefined) {
    session.connect();
    await session.post('Profiler.enable');
    await session.post('Profiler.start');
    return {};
  }
  const { profile } = await session.post('Profiler.stop');
  writeFileSync(file, JSON.stringify(profile));
  session.disconnect();
  return {};
}

async function main(kind: string): Promise<void> {
  const load = KINDS[kind];
  if (!load) throw new Error(`no such fleet: ${kind}`);
  const fleet = new Fleet(await load());
  const session = new Session();
  const obey = async (order: Order): Promise<object> => {
    switch (order.op) {
      case 'open':
        return fleet.open(order);
      case 'storm':
        return fleet.storm(order);
      case 'changes':
        return fleet.changes(order);
      case 'idle':
        return fleet.idle(order);
      case 'probe':
        return fleet.probe(order);
      case 'await':
        return fleet.await(order);
      case 'register':
        return register(order);
      case 'size':
        return size(order);
      case 'watches':
        return watches(order);
      case 'profile':
        return profile(session, order.file);
      case 'close':
        await fleet.close();
        return {};
    }
  };
  for await (const line of createInterface({ input: process.stdin })) {
    const { id, order } = JSON.parse(line) as { id: number; order: Order };
    // Not one after the other: one order may wait for what another one brings about.
    void obey(order)
      .then(
        (result) => ({ id, result }),
        (error: unknown) => ({ id, error: error instanceof Error ? (error.stack ?? error.message) : String(error) }),
      )
      .then((answer) => process.stdout.write(`${JSON.stringify(answer)}\n`));
  }
  // Whoever gave the orders is gone, or has had enough.
  process.exit();
}

await main(process.argv[2] ?? '');
