import { createInterface } from 'node:readline/promises';
import type { RecoveryPlan } from '../../elastic/recover.ts';
import type { Context } from '../context.ts';
import { EXIT_OK, UsageError } from '../exit.ts';
import { elasticOptions, type HostFlags } from './flags.ts';

export interface RecoverFlags extends HostFlags {
  yes?: boolean;
}

export async function recover(context: Context, flags: RecoverFlags): Promise<number> {
  const [{ recover: run }, { resolveElasticOptions }] = await load();
  const config = resolveElasticOptions(elasticOptions(flags, context.env));
  await run(config, (plan) => confirm(context, flags, describe(config.hostname, plan)));
  context.stdout.write(
    `${config.hostname} is the cluster’s only member now: start it as ever; the others then join anew\n`,
  );
  return EXIT_OK;
}

export async function restore(context: Context, flags: RecoverFlags, snapshot: string): Promise<number> {
  const [{ restore: run }, { resolveElasticOptions }] = await load();
  const config = resolveElasticOptions(elasticOptions(flags, context.env));
  const what = `This makes a NEW cluster of ${config.hostname} from ${snapshot}; what lies in ${config.dataDir} is kept aside.`;
  if (!(await confirm(context, flags, what))) throw new UsageError('not confirmed: nothing was changed');
  await run(config, snapshot);
  context.stdout.write(
    `restored: start ${config.hostname} as ever; the other hosts join anew without their state folders\n`,
  );
  return EXIT_OK;
}

function load() {
  return Promise.all([import('../../elastic/recover.ts'), import('../../elastic/options.ts')]);
}

async function confirm(context: Context, flags: RecoverFlags, text: string): Promise<boolean> {
  context.stderr.write(`${text}\n`);
  if (flags.yes) return true;
  if (!process.stdin.isTTY) throw new UsageError('say --yes where nobody can be asked');
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  try {
    return /^y(es)?$/i.test((await terminal.question('Go on? [y/N] ')).trim());
  } finally {
    terminal.close();
  }
}

function describe(host: string, { raftIndex, others, silent }: RecoveryPlan): string {
  const heard = others.map(({ name, raftIndex: index }) => `${name} has up to ${index}`);
  return [
    `This makes ${host} the only member of its cluster, with all it has (raft index ${raftIndex}).`,
    ...(heard.length > 0 ? [`Others that answer: ${heard.join(', ')}.`] : []),
    ...(silent.length > 0
      ? [`Not heard of: ${silent.join(', ')}. What they alone had is lost. They must not run meanwhile.`]
      : []),
  ].join('\n');
}
