import { PathNotFoundError } from '../core/errors.ts';
import type { Ephemeral } from '../ephemeral/api.ts';
import type { KeyStat } from '../ephemeral/inspect.ts';
import { DEFAULT_TTL_S } from '../ephemeral/options.ts';
import { patienceMs } from '../ephemeral/ownership.ts';
import type { Context } from './context.ts';
import type { GlobalFlags } from './options.ts';
import { escapeText, leaseHex, writeJson } from './output.ts';

/** A registration usually takes milliseconds: who waits for longer wants to know what for. */
const TELL_AFTER_MS = 1_000;

/** Settles as `registering` does. When that takes longer than a moment, stderr hears what is waited for, once. */
export async function tellingWhatIsAwaited<T>(
  context: Context,
  flags: GlobalFlags,
  client: Ephemeral,
  path: string,
  registering: Promise<T>,
): Promise<T> {
  const startMs = Date.now();
  const settled = new AbortController();
  const timer = setTimeout(() => {
    // It is no more than a message: what is wrong will be told by the registration itself.
    tell(context, flags, client, path, startMs, settled.signal).catch(() => {});
  }, TELL_AFTER_MS);
  try {
    return await registering;
  } finally {
    clearTimeout(timer);
    settled.abort();
  }
}

async function tell(
  context: Context,
  flags: GlobalFlags,
  client: Ephemeral,
  path: string,
  startMs: number,
  settled: AbortSignal,
): Promise<void> {
  const say = (line: string, more: object = {}) => {
    if (settled.aborted) return;
    if (flags.json) writeJson(context.stderr, { path, state: 'waiting', ...more });
    else context.stderr.write(`ephemeral: waiting to register ${escapeText(path)}: ${line}\n`);
  };
  if (client.state !== 'connected') return say('etcd does not answer', { reason: 'disconnected' });
  const holder = await holderOf(context, client, path, settled);
  if (holder === undefined) return say('etcd has not taken it yet', { reason: 'not taken' });
  const { lease, ttl = 0, secondsLeft } = holder;
  const until = new Date(startMs + patienceMs((flags.ttl ?? DEFAULT_TTL_S) * 1_000, ttl * 1_000));
  const time = until.toTimeString().slice(0, 8);
  say(
    `lease ${leaseHex(lease)} holds it, which ends in ${secondsLeft} s unless it is renewed; given up at about ${time}`,
    { reason: 'held', lease, leaseHex: leaseHex(lease), secondsLeft, until: until.toISOString() },
  );
}

async function holderOf(
  context: Context,
  client: Ephemeral,
  path: string,
  signal: AbortSignal,
): Promise<KeyStat | undefined> {
  try {
    return (await context.inspect(client, path, { signal })).key;
  } catch (error) {
    if (error instanceof PathNotFoundError) return undefined;
    throw error;
  }
}
