import { setTimeout as delay } from 'node:timers/promises';
import type { Child } from './child.ts';
import type { SignalSource } from './context.ts';
import { EXIT_ERROR } from './exit.ts';

/** Asked to end: deregister, drain, then pass the signal on. */
const ENDING = ['SIGINT', 'SIGTERM'] as const satisfies readonly NodeJS.Signals[];
/** Many services reload on SIGHUP; the others mean whatever the service likes. They are passed on and change nothing here. */
const PASSED_ON = ['SIGHUP', 'SIGUSR1', 'SIGUSR2'] as const satisfies readonly NodeJS.Signals[];

export interface Supervision {
  readonly child: Child;
  readonly signals: SignalSource;
  /** From deregistered to the signal's being passed on. */
  readonly drainMs: number;
  /** Registers; aborted when the child ends or is to end before. */
  announce(signal: AbortSignal): Promise<void>;
  /** Deregisters, whatever `announce` has come to. */
  withdraw(): Promise<void>;
  /** Hears why `announce` failed; the child is then told to end. */
  onFailure(error: unknown): void;
}

/** Keeps the registration for as long as the child lives. Resolves with the code to exit with: the child's, or 1 after a failure. */
export async function supervise(supervision: Supervision): Promise<number> {
  const { child, announce, withdraw } = supervision;
  const ending = new AbortController();
  const hurried = new AbortController();
  let announced = false;
  let failed = false;

  const endWith = async (name: NodeJS.Signals) => {
    const drainMs = announced ? supervision.drainMs : 0;
    ending.abort();
    await withdraw().catch(() => {});
    await delay(drainMs, undefined, { signal: hurried.signal }).catch(() => {});
    if (!hurried.signal.aborted) child.signal(name);
  };
  const onEnding = (name: NodeJS.Signals) => {
    if (!ending.signal.aborted) return void endWith(name);
    // Asked again: what is left of the drain is waived.
    hurried.abort();
    child.signal(name);
  };
  const stopListening = listen(supervision.signals, onEnding, (name) => child.signal(name));

  const announcing = announce(ending.signal).then(
    () => {
      announced = true;
    },
    (error: unknown) => {
      if (ending.signal.aborted) return;
      failed = true;
      supervision.onFailure(error);
      child.signal('SIGTERM');
    },
  );
  try {
    const exitCode = await child.exited;
    ending.abort();
    hurried.abort();
    await announcing;
    await withdraw();
    return failed ? EXIT_ERROR : exitCode;
  } finally {
    stopListening();
  }
}

function listen(
  source: SignalSource,
  onEnding: (name: NodeJS.Signals) => void,
  onOther: (name: NodeJS.Signals) => void,
): () => void {
  const listeners = [
    ...ENDING.map((name) => ({ name, listener: () => onEnding(name) })),
    ...PASSED_ON.map((name) => ({ name, listener: () => onOther(name) })),
  ];
  for (const { name, listener } of listeners) source.on(name, listener);
  return () => {
    for (const { name, listener } of listeners) source.off(name, listener);
  };
}
