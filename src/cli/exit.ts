import { constants } from 'node:os';
import { EphemeralError } from '../core/errors.ts';
import { adviceOf } from './advice.ts';
import { escapeText, withoutUserinfo } from './output.ts';

export const EXIT_OK = 0;
export const EXIT_ERROR = 1;
export const EXIT_USAGE = 2;
/** As shells do. */
export const EXIT_NOT_EXECUTABLE = 126;
export const EXIT_NOT_FOUND = 127;

/** 128 + the signal's number, as shells say it: 130 for SIGINT, 143 for SIGTERM. */
export function exitCodeOfSignal(signal: NodeJS.Signals): number {
  return 128 + constants.signals[signal];
}

/** The command line or its environment asks for what cannot be. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

/** An error of the command itself, with the code that its line shows. */
export class CommandError extends Error {
  override readonly name = 'CommandError';

  constructor(
    readonly code: string,
    message: string,
    readonly exitCode: number = EXIT_ERROR,
  ) {
    super(message);
  }
}

/** The reason of an AbortSignal: the user or the system wants the command to end. */
export class Interrupted extends Error {
  override readonly name = 'Interrupted';

  constructor(readonly signal: NodeJS.Signals) {
    super(`interrupted by ${signal}`);
  }
}

function codeOf(error: unknown): string {
  if (error instanceof EphemeralError || error instanceof CommandError) return error.code;
  return 'INTERNAL';
}

/** What an error is for the user: one line, and the code to exit with. */
export function describeError(error: unknown): { line: string; exitCode: number } {
  const message = withoutUserinfo(escapeText(adviceOf(error)));
  if (error instanceof Interrupted) return { line: '', exitCode: exitCodeOfSignal(error.signal) };
  if (error instanceof UsageError) return { line: `ephemeral: ${message}\n`, exitCode: EXIT_USAGE };
  const exitCode = error instanceof CommandError ? error.exitCode : EXIT_ERROR;
  return { line: `ephemeral: ${codeOf(error)}: ${message}\n`, exitCode };
}
