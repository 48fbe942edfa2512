/** A Node program under test: what it printed, and how it ended. */
import { type ChildProcess, spawn } from 'node:child_process';
import { until } from './wait.ts';

export class Program {
  readonly child: ChildProcess;
  stdout = '';
  stderr = '';
  /** The code, or the name of the signal that ended it. */
  ended: number | NodeJS.Signals | undefined;

  constructor(script: string, args: readonly string[], env: NodeJS.ProcessEnv = {}) {
    const child = spawn(process.execPath, ['--import', 'tsx', script, ...args], {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, ...env },
    });
    child.stdout.on('data', (chunk) => {
      this.stdout += chunk;
    });
    child.stderr.on('data', (chunk) => {
      this.stderr += chunk;
    });
    child.once('close', (code, signal) => {
      this.ended = code ?? signal ?? undefined;
    });
    this.child = child;
  }

  /** Resolves to the match once it has printed that. */
  printed(pattern: RegExp): Promise<RegExpExecArray> {
    return until(() => {
      const match = pattern.exec(this.stdout);
      if (!match && this.ended !== undefined) {
        throw new Error(`it ended (${this.ended}) without printing that: ${this.stdout}${this.stderr}`);
      }
      return match;
    }, `${pattern} to be printed`);
  }

  end(signal: NodeJS.Signals): void {
    this.child.kill(signal);
  }

  async exit(boundMs?: number): Promise<number | NodeJS.Signals> {
    await until(() => this.ended !== undefined, `${this.child.spawnargs.join(' ')} to end`, boundMs);
    return this.ended ?? 'SIGKILL';
  }
}
