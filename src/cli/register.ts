import { setTimeout as delay } from 'node:timers/promises';
import { parsePath } from '../core/paths.ts';
import type { Ephemeral, Heartbeat, Registration } from '../ephemeral/api.ts';
import { adviceOf } from './advice.ts';
import { tellingWhatIsAwaited } from './awaited.ts';
import { startChild } from './child.ts';
import type { Context } from './context.ts';
import { describeError } from './exit.ts';
import { connectOptions, type GlobalFlags } from './options.ts';
import { escapeText, withoutUserinfo, writeJson } from './output.ts';
import { untilReady } from './ready.ts';
import { interruptible, withClient } from './session.ts';
import { supervise } from './supervise.ts';

export interface RegisterFlags extends GlobalFlags {
  ready?: URL;
  /** Seconds. */
  drain?: number;
  heartbeat?: Heartbeat;
}

/** Says on stderr when the registration is there, is lost, and is back: the output is the child's. */
function tellStates(context: Context, flags: RegisterFlags, registration: Registration): void {
  const path = escapeText(registration.path);
  const tell = (state: string, line: string, error?: string) => {
    if (flags.json) writeJson(context.stderr, { path: registration.path, state, error });
    else context.stderr.write(`ephemeral: ${line}\n`);
  };
  let wasLost = false;
  registration.state$.subscribe((state) => {
    if (state === 'registered') tell(state, `registered ${path}${wasLost ? ' again' : ''}`);
    if (state === 'removed') tell(state, `deregistered ${path}`);
    if (state === 'lost') {
      wasLost = true;
      const { error } = registration;
      const why = error ? `${error.code}: ${escapeText(adviceOf(error))}` : 'no reason is known';
      tell(state, `lost ${path}, trying to get it back: ${why}`, error?.code);
    }
  });
}

/** Waits until the service is ready, and registers it. */
async function announce(
  context: Context,
  flags: RegisterFlags,
  client: Ephemeral,
  path: string,
  value: string,
  signal: AbortSignal,
): Promise<void> {
  const { ready, heartbeat } = flags;
  if (ready !== undefined) {
    await untilReady(ready, signal, (reason) => {
      context.stderr.write(`ephemeral: waiting for ${withoutUserinfo(ready.href)}: ${escapeText(reason)}\n`);
    });
  }
  const registering = client.addKey(path, value, { heartbeat, signal });
  tellStates(context, flags, await tellingWhatIsAwaited(context, flags, client, path, registering));
}

function whenAborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}

/** Without a command: holds the registration until a signal. A second signal ends the drain with the process. */
function hold(context: Context, flags: RegisterFlags, path: string, value: string): Promise<number> {
  return interruptible(context.signals, (interrupted) =>
    withClient(context, flags, {}, interrupted, async (client) => {
      await announce(context, flags, client, path, value, interrupted);
      await whenAborted(interrupted);
      await client.close();
      await delay((flags.drain ?? 0) * 1_000);
      throw interrupted.reason;
    }),
  );
}

/** With a command: runs it, registers while it lives, and exits as it does. */
async function runCommand(
  context: Context,
  flags: RegisterFlags,
  path: string,
  value: string,
  command: readonly string[],
): Promise<number> {
  const options = connectOptions(flags, context.env);
  const client = await interruptible(context.signals, (signal) => context.connect({ ...options, signal }));
  try {
    const child = await startChild(command);
    return await supervise({
      child,
      signals: context.signals,
      drainMs: (flags.drain ?? 0) * 1_000,
      announce: (signal) => announce(context, flags, client, path, value, signal),
      withdraw: () => client.close(),
      onFailure: (error) => context.stderr.write(describeError(error).line),
    });
  } finally {
    await client.close();
  }
}

export async function register(
  context: Context,
  flags: RegisterFlags,
  path: string,
  value: string,
  command: readonly string[],
): Promise<number> {
  parsePath(path);
  return command.length === 0 ? hold(context, flags, path, value) : runCommand(context, flags, path, value, command);
}
