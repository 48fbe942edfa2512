import { randomBytes } from 'node:crypto';
import { constants } from 'node:os';
import { EphemeralError } from '../index.ts';
import { liveDisplay, type Picture, plainDisplay } from './display.ts';
import { elasticPicture } from './elastic-screen.ts';
import { ElasticScript } from './elastic-script.ts';
import { ElasticStage } from './elastic-stage.ts';
import type { Note, Step } from './facts.ts';
import { servicePicture } from './picture.ts';
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
  /** Shows an etcd cluster that grows, heals and shrinks, instead of services. */
  readonly elastic?: boolean | undefined;
}

/** What is shown, and whoever plays it. */
interface Show {
  readonly picture: Picture;
  sample(): void;
  /** Resolves to what is to be said afterwards. */
  play(onStep: (step: Step) => void): Promise<string[]>;
  /** Resolves when all processes have ended. */
  end(): Promise<void>;
}

interface Hooks {
  readonly signal: AbortSignal;
  onBroken(error: Error): void;
  onNote(note: Note): void;
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
export async function runDemo(options: DemoOptions): Promise<number> {
  const ending = new AbortController();
  const output = process.stdout;
  const onOutputError = () => ending.abort(new Stopped(0));
  // Nobody reads any more, as with `| head`.
  output.on('error', onOutputError);
  const stopListening = listenForSignals(ending);

  const show = (options.elastic ? elasticShow : serviceShow)(options, {
    signal: ending.signal,
    onBroken: (error) => ending.abort(error),
    onNote: (note) => display.note(note),
  });
  const isLive = output.isTTY && process.env.TERM !== 'dumb';
  const display = (isLive ? liveDisplay : plainDisplay)(output, show.picture);
  const sampling = setInterval(() => show.sample(), SAMPLE_PERIOD_MS);
  try {
    const lines = await endingWith(show, ending.signal, () => show.play((step) => display.step(step)));
    display.close();
    output.write(`${lines.join('\n')}\n`);
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

function serviceShow({ endpoints, pace = 1 }: DemoOptions, hooks: Hooks): Show {
  const namespace = `/ephemeral-demo-${randomBytes(6).toString('hex')}`;
  const stage = new Stage({ endpoints: endpoints?.map(toUrl), namespace, ...hooks });
  return {
    picture: servicePicture(() => stage.facts()),
    sample: () => stage.sample(),
    play: async (onStep) => summary(await new Script(stage, pace, onStep).play()),
    end: () => stage.end(),
  };
}

function elasticShow({ pace = 1 }: DemoOptions, hooks: Hooks): Show {
  const stage = new ElasticStage(hooks);
  return {
    picture: elasticPicture(() => stage.facts()),
    sample: () => {},
    play: (onStep) => new ElasticScript(stage, pace, onStep).play(),
    end: () => stage.end(),
  };
}

/** All processes have ended when it settles. What went wrong first is what it rejects with. */
async function endingWith<T>(show: Show, signal: AbortSignal, play: () => Promise<T>): Promise<T> {
  let result: T;
  try {
    result = await play();
  } catch (error) {
    // Once the signal is there, all sorts of things fail because of it.
    const first = signal.aborted ? signal.reason : error;
    await show.end().catch((left) => {
      throw first instanceof Stopped ? left : first;
    });
    throw first;
  }
  await show.end();
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
