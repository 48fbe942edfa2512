import { abortable } from '../../core/abortable.ts';
import { messageOf } from '../../core/log.ts';
import type { ElasticRemote } from '../../elastic/remote.ts';
import type { ClusterStatus } from '../../elastic/status.ts';
import type { Context } from '../context.ts';
import { EXIT_ERROR, EXIT_OK, UsageError } from '../exit.ts';
import { connectOptions, type GlobalFlags } from '../options.ts';
import { escapeLines, writeJson } from '../output.ts';
import { interruptible } from '../session.ts';
import { withMemory } from './remembered.ts';

export interface StatusFlags extends GlobalFlags {
  watch?: boolean;
  stateDir?: string;
}

const WATCH_MS = 500;
const DEFAULT_NAMESPACE = '/_elastic';
/** A change of size takes etcd 5 s a voter, and a backup each. */
const PATIENCE_S = 120;

type Body<T> = (remote: ElasticRemote, signal: AbortSignal) => Promise<T>;

/** Runs `body` with the cluster that the endpoints name. */
async function withRemote<T>(context: Context, flags: GlobalFlags, body: Body<T>): Promise<T> {
  const { ElasticRemote } = await import('../../elastic/remote.ts');
  const { hosts, credentials, auth } = connectOptions(flags, context.env);
  return interruptible(context.signals, async (signal) => {
    const remote = new ElasticRemote({
      endpoints: hosts,
      credentials,
      auth,
      namespace: flags.namespace ?? DEFAULT_NAMESPACE,
    });
    try {
      return await abortable(body(remote, signal), signal);
    } finally {
      await remote.close();
    }
  });
}

/** 0 only when the cluster is healthy and as wanted. */
export async function status(context: Context, flags: StatusFlags): Promise<number> {
  const { statusText } = await import('../../elastic/status-text.ts');
  const show = (state: ClusterStatus) => {
    if (flags.json) writeJson(context.stdout, state);
    else context.stdout.write(escapeLines(statusText(state)));
    return state.healthy && state.converged ? EXIT_OK : EXIT_ERROR;
  };
  return withRemote(context, flags, async (remote, signal) => {
    if (!flags.watch) {
      const look = remote
        .status()
        .catch(async (error: unknown) => Promise.reject(await withMemory(error, flags.stateDir)));
      return show(await look);
    }
    let last = '';
    while (!signal.aborted && !context.stdout.closed.aborted) {
      last = await showIfNew(context, remote, flags, last, statusText);
      await new Promise((resolve) => setTimeout(resolve, WATCH_MS));
    }
    return EXIT_OK;
  });
}

/** On a terminal the ages go on; elsewhere a state is written once, whatever the time. */
async function showIfNew(
  context: Context,
  remote: ElasticRemote,
  flags: StatusFlags,
  last: string,
  statusText: (state: ClusterStatus) => string,
): Promise<string> {
  const state = await remote.status().catch((error: unknown) => error as Error);
  const isScreen = context.stdout.isTTY && !flags.json;
  const key = isScreen || state instanceof Error ? undefined : JSON.stringify(withoutNoise(state));
  const text = describe(state, flags, statusText);
  if ((key ?? text) === last) return last;
  context.stdout.write(isScreen ? `\u001b[H\u001b[2J${text}` : text);
  return key ?? text;
}

function describe(
  state: ClusterStatus | Error,
  flags: StatusFlags,
  statusText: (state: ClusterStatus) => string,
): string {
  if (state instanceof Error) {
    const error = `no look at the cluster: ${messageOf(state)}`;
    return flags.json ? `${JSON.stringify({ error })}\n` : `${error}\n`;
  }
  return flags.json ? `${JSON.stringify(state)}\n` : escapeLines(`${statusText(state)}\n`);
}

/** What goes up and down all the time. */
function withoutNoise(state: ClusterStatus): ClusterStatus {
  const quiet = { leaseAgeS: undefined, raftLag: undefined, dbSizeBytes: undefined };
  return { ...state, rows: state.rows.map((row) => ({ ...row, ...quiet })) };
}

export async function plan(context: Context, flags: GlobalFlags): Promise<number> {
  const { planText } = await import('../../elastic/status-text.ts');
  return withRemote(context, flags, async (remote) => {
    const { wanted, steps, blocked, converged, generation } = (await remote.look()).plan;
    if (flags.json) writeJson(context.stdout, { generation, wanted, steps, blocked, converged });
    else context.stdout.write(escapeLines(planText({ wanted, steps, blocked, converged })));
    return EXIT_OK;
  });
}

export async function wait(context: Context, flags: GlobalFlags, seconds: number | undefined): Promise<number> {
  return withRemote(context, flags, async (remote, signal) => {
    await remote.wait((seconds ?? PATIENCE_S) * 1_000, signal);
    return EXIT_OK;
  });
}

export async function resize(context: Context, flags: GlobalFlags, text: string): Promise<number> {
  const { parseSize, voterCount } = await import('../../elastic/chooser.ts');
  const size = parseSize(text);
  if (size === undefined) throw new UsageError(`the size "${text}" is none: it is a whole number from 1 to 99`);
  return withRemote(context, flags, async (remote) => {
    await remote.resize(size);
    // The size stands, whether or not it can be seen what comes of it.
    const hosts = await remote.hostCount().catch(() => size);
    const voters = voterCount(size, hosts);
    if (flags.json) writeJson(context.stdout, { idealSize: size, hosts, voters });
    else context.stdout.write(`${resizeText(size, hosts, voters)}\n`);
    return EXIT_OK;
  });
}

function resizeText(size: number, hosts: number, voters: number): string {
  const wanted = size === 1 ? '1 voter is wanted' : `${size} voters are wanted`;
  if (voters === size) return wanted;
  const there = hosts === 1 ? '1 host is there' : `${hosts} hosts are there`;
  const until = hosts < size ? ', until more hosts come' : ', since an even number stands no more failures';
  return `${wanted}; ${there}: ${voters} ${voters === 1 ? 'votes' : 'vote'}${until}`;
}

export async function leave(context: Context, flags: GlobalFlags, host: string): Promise<number> {
  return withRemote(context, flags, async (remote, signal) => {
    await remote.leave(host, PATIENCE_S * 1_000, signal);
    return EXIT_OK;
  });
}

export async function backup(context: Context, flags: GlobalFlags, folder: string): Promise<number> {
  return withRemote(context, flags, async (remote) => {
    const path = await remote.backUp(folder);
    if (flags.json) writeJson(context.stdout, { backup: path });
    else context.stdout.write(`${path}\n`);
    return EXIT_OK;
  });
}

export async function heal(context: Context, flags: GlobalFlags): Promise<number> {
  const elastic = await import('../../elastic/heal.ts');
  return withRemote(context, flags, async (remote) => {
    const { view } = await remote.look();
    await elastic.heal(remote.admin, view, (line) => context.stdout.write(`${line}\n`));
    return EXIT_OK;
  });
}
