/** The command in this process, with all that it touches outside itself in a test's hands. */
import { EventEmitter } from 'node:events';
import type { ConnectOptions, Context } from '../../src/cli/context.ts';
import { runProgram } from '../../src/cli/program.ts';
import type { Ephemeral } from '../../src/ephemeral/api.ts';

/** A promise that only its signal ends. */
export function hanging(signal: AbortSignal | undefined): Promise<never> {
  return new Promise((_, reject) => signal?.addEventListener('abort', () => reject(signal.reason)));
}

export interface WorldOptions {
  readonly env?: Context['env'];
  readonly inspect?: Context['inspect'];
  /** Whether the output is a terminal. */
  readonly isTTY?: boolean;
}

/** A world around the command in which `client` is what it connects to. */
export function setUp(client: Partial<Ephemeral> = {}, { env = {}, isTTY = false, inspect }: WorldOptions = {}) {
  const signals = new EventEmitter();
  const text = { stdout: '', stderr: '' };
  const connected: ConnectOptions[] = [];
  let closed = 0;
  const output = (name: 'stdout' | 'stderr') => ({
    write: (more: string) => {
      text[name] += more;
    },
    isTTY,
    closed: new AbortController().signal,
  });
  const close = async () => {
    closed += 1;
  };
  const context: Context = {
    env,
    version: '1.2.3',
    stdout: output('stdout'),
    stderr: output('stderr'),
    signals,
    connect: async (options) => {
      connected.push(options);
      return { ...client, close } as Ephemeral;
    },
    inspect: inspect ?? ((_client, _path, { signal }) => hanging(signal)),
    runDemo: async () => 0,
  };
  return {
    signals,
    text,
    connected,
    run: (...args: string[]) => runProgram(args, context),
    get closed() {
      return closed;
    },
  };
}
