import { spawn } from 'node:child_process';
import type { ElasticCluster, ElasticExit, ElasticOptions } from '../../elastic.ts';
import type { Context } from '../context.ts';
import { EXIT_ERROR, EXIT_OK, exitCodeOfSignal } from '../exit.ts';
import { escapeText } from '../output.ts';
import { elasticOptions, type HostFlags } from './flags.ts';

export interface RunFlags extends HostFlags {
  /** What both ^C and SIGTERM do. Without it, ^C leaves and SIGTERM stops. */
  onSignal?: 'stop' | 'leave';
}

type Make = (options: ElasticOptions) => ElasticCluster;

/** Runs this host until a signal, or until its part is over; says on stderr what it does. */
export async function runElastic(context: Context, flags: RunFlags, make: Make): Promise<number> {
  const say = (level: string) => (message: string) => context.stderr.write(`${level}${escapeText(message)}\n`);
  const logger = { info: say(''), warn: say('warning: '), error: say('error: ') };
  const cluster = make({ ...elasticOptions(flags, context.env), logger });
  let signalled: NodeJS.Signals | undefined;
  const onSignal = (signal: 'SIGINT' | 'SIGTERM') => () => {
    signalled ??= signal;
    const leaves = flags.onSignal === undefined ? signal === 'SIGINT' : flags.onSignal === 'leave';
    if (leaves) interrupt(cluster, logger.warn);
    else void cluster.stop();
  };
  const listeners = (['SIGINT', 'SIGTERM'] as const).map((signal) => ({ signal, listener: onSignal(signal) }));
  for (const { signal, listener } of listeners) context.signals.on(signal, listener);
  try {
    await start(cluster, () => signalled !== undefined);
    if (signalled === undefined) announce(context, flags);
    return exitCode(await cluster.exited, signalled);
  } finally {
    for (const { signal, listener } of listeners) context.signals.off(signal, listener);
  }
}

/** A start that a signal has ended is no failure of its own. */
async function start(cluster: ElasticCluster, isSignalled: () => boolean): Promise<void> {
  try {
    await cluster.start();
  } catch (error) {
    if (!isSignalled()) throw error;
  }
}

function interrupt(cluster: ElasticCluster, say: (message: string) => void): void {
  const what = cluster.interrupt();
  if (what.did === 'leave')
    say('leaving the cluster for good; once more to hear what it waits for, a third time to end at once');
  else if (what.did === 'stop')
    say('the only host does not leave: it stops, and keeps its data; a third ^C ends it at once');
  else if (what.did === 'tell') say(`it waits for ${what.waitsFor}`);
  else say('ended at once: its member may still have to be removed (ephemeral elastic leave)');
}

function announce(context: Context, flags: RunFlags): void {
  const line = flags.json ? JSON.stringify({ ready: true }) : 'ready';
  context.stdout.write(`${line}\n`);
  // systemd's Type=notify; NotifyAccess=all lets a child of ours say it.
  if (context.env.NOTIFY_SOCKET) spawn('systemd-notify', ['--ready'], { stdio: 'ignore' }).on('error', () => {});
}

function exitCode({ reason, error }: ElasticExit, signalled: NodeJS.Signals | undefined): number {
  if (reason === 'failed' && error && signalled === undefined) throw error;
  if (signalled !== undefined) return exitCodeOfSignal(signalled);
  return reason === 'failed' ? EXIT_ERROR : EXIT_OK;
}
