import type { ClientOptions, Ephemeral } from '../ephemeral/api.ts';
import type { Context, SignalSource } from './context.ts';
import { CommandError, Interrupted } from './exit.ts';
import { connectOptions, type GlobalFlags } from './options.ts';

/** What ends a command from outside. */
export const ENDING_SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const satisfies readonly NodeJS.Signals[];

/**
 * Runs `body` with a signal that is aborted, with an Interrupted as its reason, at the first ending signal. A second one finds no
 * listener of ours and ends the process on the spot.
 */
export async function interruptible<T>(source: SignalSource, body: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const controller = new AbortController();
  const listeners = ENDING_SIGNALS.map((name) => ({ name, listener: () => interrupt(name) }));
  const stopListening = () => {
    for (const { name, listener } of listeners) source.off(name, listener);
  };
  const interrupt = (name: NodeJS.Signals) => {
    stopListening();
    controller.abort(new Interrupted(name));
  };
  for (const { name, listener } of listeners) source.on(name, listener);
  try {
    return await body(controller.signal);
  } catch (error) {
    // Whatever failed after the interruption failed because of it.
    throw controller.signal.aborted ? controller.signal.reason : error;
  } finally {
    stopListening();
  }
}

/** A connected client for the time of `body`. */
export async function withClient<T>(
  context: Context,
  flags: GlobalFlags,
  extra: ClientOptions,
  signal: AbortSignal,
  body: (client: Ephemeral) => Promise<T>,
): Promise<T> {
  const client = await context.connect({ ...connectOptions(flags, context.env), ...extra, signal });
  try {
    return await body(client);
  } finally {
    await client.close();
  }
}

/** A command that asks once: connects, has `--timeout` seconds for the answer, and writes nothing for lists. */
export function once(
  context: Context,
  flags: GlobalFlags,
  body: (client: Ephemeral, signal: AbortSignal) => Promise<void>,
): Promise<void> {
  return interruptible(context.signals, (interrupted) =>
    withClient(context, flags, { candidate: false }, interrupted, async (client) => {
      const timeout = AbortSignal.timeout(flags.timeout * 1_000);
      try {
        await body(client, AbortSignal.any([interrupted, timeout]));
      } catch (error) {
        if (!timeout.aborted || error !== timeout.reason) throw error;
        throw new CommandError('TIMEOUT', `no answer within ${flags.timeout} s; --timeout allows more`);
      }
    }),
  );
}
