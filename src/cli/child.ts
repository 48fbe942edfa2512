import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { CommandError, EXIT_NOT_EXECUTABLE, EXIT_NOT_FOUND, exitCodeOfSignal } from './exit.ts';

export interface Child {
  /** Resolves with the code to exit with: the child's own, or 128 + n when signal n ended it. */
  readonly exited: Promise<number>;
  signal(name: NodeJS.Signals): void;
}

function spawnError(command: string, error: NodeJS.ErrnoException): CommandError {
  if (error.code === 'ENOENT') return new CommandError('COMMAND_NOT_FOUND', `${command}: not found`, EXIT_NOT_FOUND);
  if (error.code === 'EACCES') {
    return new CommandError('COMMAND_NOT_EXECUTABLE', `${command}: permission denied`, EXIT_NOT_EXECUTABLE);
  }
  return new CommandError('COMMAND_FAILED', `${command}: ${error.message}`, EXIT_NOT_EXECUTABLE);
}

/**
 * Starts the command with our input and output, and resolves when it runs.
 *
 * It gets a process group of its own: a terminal sends Ctrl-C to the whole group, which would reach the child before it is
 * deregistered, and then a second time when it is passed on.
 * @throws CommandError when it cannot be started
 */
export async function startChild([command = '', ...args]: readonly string[]): Promise<Child> {
  let child: ChildProcess;
  try {
    child = spawn(command, args, { stdio: 'inherit', detached: true });
    await once(child, 'spawn');
  } catch (error) {
    throw spawnError(command, error as NodeJS.ErrnoException);
  }
  const exited = new Promise<number>((resolve) => {
    child.once('exit', (code, signal) => resolve(signal === null ? (code ?? 0) : exitCodeOfSignal(signal)));
  });
  // A signal to a child that has just gone fails, and no longer matters.
  child.on('error', () => {});
  return { exited, signal: (name) => void child.kill(name) };
}
