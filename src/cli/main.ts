#!/usr/bin/env node
import { readFileSync } from 'node:fs';
import type { Context, TextOutput } from './context.ts';
import { EXIT_ERROR, EXIT_OK } from './exit.ts';
import { runProgram } from './program.ts';

interface Output extends TextOutput {
  /** Resolves when all is written, or cannot be. */
  flush(): Promise<void>;
}

function outputTo(stream: NodeJS.WriteStream): Output {
  const closed = new AbortController();
  stream.on('error', (error) => closed.abort(error));
  return {
    write: (text) => {
      if (!closed.signal.aborted) stream.write(text);
    },
    flush: () => new Promise((resolve) => stream.write('', () => resolve())),
    isTTY: stream.isTTY === true,
    closed: closed.signal,
  };
}

function packageVersion(): string {
  const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'));
  return version;
}

// What Node thinks of the code of our dependencies is not for whoever runs the command.
process.noDeprecation = true;

const stdout = outputTo(process.stdout);
const stderr = outputTo(process.stderr);

// What connects is loaded when it is needed: --help need not wait for it.
const context: Context = {
  env: process.env,
  version: packageVersion(),
  stdout,
  stderr,
  signals: process,
  connect: async (options) => (await import('../index.ts')).EtcdEphemeral.connect(options),
  inspect: async (client, path, options) => (await import('../ephemeral/inspect.ts')).inspect(client, path, options),
  runDemo: async (args) => (await import('../demo/main.ts')).runDemo(args),
};

let exitCode = await runProgram(process.argv.slice(2), context);
await stdout.flush();
if (stdout.closed.aborted) {
  // A reader that has seen enough is no error; a full disk is.
  const { code = '', message } = stdout.closed.reason as NodeJS.ErrnoException;
  if (code !== 'EPIPE') {
    stderr.write(`ephemeral: ${code}: cannot write the output: ${message}\n`);
    exitCode = exitCode === EXIT_OK ? EXIT_ERROR : exitCode;
  }
}
await stderr.flush();
// Nothing that is left, such as a connection that is slow to end, may hold the process.
process.exit(exitCode);
