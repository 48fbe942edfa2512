import { randomBytes } from 'node:crypto';
import { constants } from 'node:os';
import { EphemeralError } from '../index.ts';
import { liveDisplay, plainDisplay } from './display.ts';
import { Script } from './script.ts';
import { Stage } from './stage.ts';
import { summary } from './summary.ts';

const SAMPLE_PERIOD_MS = 100;
/** npm passes on a signal that the terminal has sent already: that one is no second Ctrl-C. */
const ECHO_MS = 500;
const ENDING_SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

export interface DemoOptions {
  /** Of an etcd that runs. Undefined: the demo starts one of its own. */
  readonly endpoints: readonly string[] | undefined;
  /** Scales the pauses that are there for the reader. Default 1: about a minute in all. */
  readonly pace?: number | undefined;
}

/** Something that the demo needs is not there, or has broken down; the message says what to do. */
class DemoError extends EphemeralError {
  readonly code = 'DEMO_FAILED';
}

const messageOf = (error: unknown) => (error instanceof Error ? error.message : String(error));

/** The reason of the signal that ends everything. */
class Stopped extends Error {
  constructor(readonly exitCode: number) {
    super('the demo was ended');
  }
}

function toUrl(endpoint: string): string {
  return /^https?:\/\//i.test(endpoint) ? endpoint.replace(/\/+$/, '') : `http://${endpoint}`;
}

/**
 * Shows what the library does, with processes that live and die, on a terminal as a live screen and elsewhere as lines. Resolves to
 * the code to exit with once all is cleared away: 0, or 128 + n after signal n.
 * @throws DemoError
 */
export async function runDemo({ endpoints, pace = 1 }: DemoOptions): Promise<number> {
  const ending = new AbortController();
  const output = process.stdout;
  const onOutputError = () => ending.abort(new Stopped(0));
  // Nobody reads any more, as with `| head`.
  output.on('error', onOutputError);
  const stopListening = listenForSignals(ending);

  const stage = new Stage({
    endpoints: endpoints?.map(toUrl),
    namespace: `/ephemeral-demo-${randomBytes(6).toString('hex')}`,
    signal: ending.signal,
    onBroken: (error) => ending.abort(error),
    onNote: (note) => display.note(note),
  });
  const isLive = output.isTTY && process.env.TERM !== 'dumb';
  const display = (isLive ? liveDisplay : plainDisplay)(output, () => stage.facts());
  const sampling = setInterval(() => stage.sample(), SAMPLE_PERIOD_MS);
  try {
    const outcome = await endingWith(stage, ending.signal, () =>
      new Script(stage, pace, (step) => display.step(step)).play(),
    );
    display.close();
    output.write(`${summary(outcome).join('\n')}\n`);
    return 0;
  } catch (error) {
    display.close();
    if (!(error instanceof Stopped)) throw new DemoError(messageOf(error), { cause: error });
    if (error.exitCode > 0) output.write('\nThe demo was ended early; all its processes have ended with it.\n');
    return error.exitCode;
  } finally {
    clearInterval(sampling);
    stopListening();
    output.off('error', onOutputError);
  }
}

/** All processes have ended when it settles. What went wrong first is what it rejects with. */
async function endingWith<T>(stage: Stage, signal: AbortSignal, play: () => Promise<T>): Promise<T> {
  let result: T;
  try {
    result = await play();
  } catch (error) {
    // Once the signal is there, all sorts of things fail because of it.
    const first = signal.aborted ? signal.reason : error;
    await stage.end().catch((left) => {
      throw first instanceof Stopped ? left : first;
    });
    throw first;
  }
  await stage.end();
  return result;
}

/** The first signal ends the demo in good order, a second one on the spot: its processes leave by themselves then. */
function listenForSignals(ending: AbortController): () => void {
  let firstMs: number | undefined;
  const listeners = ENDING_SIGNALS.map((name) => ({
    name,
    listener: () => {
      const exitCode = 128 + constants.signals[name];
      const now = performance.now();
      if (firstMs !== undefined && now - firstMs > ECHO_MS) process.exit(exitCode);
      firstMs ??= now;
      ending.abort(new Stopped(exitCode));
    },
  }));
  for (const { name, listener } of listeners) process.on(name, listener);
  return () => {
    for (const { name, listener } of listeners) process.off(name, listener);
  };
}
