import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, existsSync, openSync, readFileSync, renameSync, statSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { debugLog } from '../core/log.ts';
import { EtcdProcessError } from './errors.ts';
import { etcdEnvironment } from './etcd-binary.ts';
import { isAlive, startOf } from './folder-lock.ts';

const log = debugLog('etcd-process');

/** What the end of an etcd says: 0 is a member that was removed, 1 a fatal configuration or join, 2 a panic. */
export interface EtcdExit {
  readonly reason: 'removed' | 'refused' | 'panic' | 'stopped' | 'killed' | 'unknown';
  readonly text: string;
}

/** A removed member ends by itself within 10 ms to 5 s. */
export const REMOVED_EXIT_MS = 6_000;
/** An orderly stop hands over leadership and closes its files: well under a second, unless the disk is very slow. */
const STOP_MS = 10_000;
const POLL_MS = 100;
const TAIL_LINES = 12;
const TAIL_BYTES = 64 * 1024;

export interface EtcdIdentity {
  readonly pid: number;
  readonly started: string;
}

/**
 * One etcd. It runs in a process group of its own: a terminal's ^C, or a service manager's signal to the group, reaches the agent
 * first, which knows what has to happen before etcd stops. It writes to a file, so that it lives on when the agent is killed.
 */
export class EtcdProcess {
  readonly identity: EtcdIdentity;
  readonly exited: Promise<EtcdExit>;
  readonly logFile: string;
  exit: EtcdExit | undefined;

  private constructor(identity: EtcdIdentity, exited: Promise<EtcdExit>, logFile: string) {
    this.identity = identity;
    this.logFile = logFile;
    this.exited = exited.then((exit) => {
      log('etcd %d ended: %s', identity.pid, exit.text);
      this.exit = exit;
      return exit;
    });
  }

  /**
   * @param folder the one to run in; default: this agent's
   * @param note is told at once, before this agent can be killed: an etcd that nobody has noted can be neither adopted nor stopped
   * @throws EtcdProcessError when it cannot even be started
   */
  static async spawn(
    path: string,
    args: readonly string[],
    logFile: string,
    folder: string | undefined,
    note: (identity: EtcdIdentity) => void,
  ): Promise<EtcdProcess> {
    keepFormerLog(logFile);
    const file = openSync(logFile, 'a', 0o600);
    try {
      log('%s %s', path, args.join(' '));
      const child = spawn(path, args, {
        detached: true,
        cwd: folder,
        stdio: ['ignore', file, file],
        env: etcdEnvironment(),
      });
      const exited = exitOf(child);
      const { pid = 0 } = child;
      const identity = { pid, started: startOf(pid) };
      if (pid !== 0) note(identity);
      await spawned(child, path);
      return new EtcdProcess(identity, exited, logFile);
    } finally {
      closeSync(file);
    }
  }

  /** An etcd whose agent died. Its exit code is not ours to see. */
  static adopt(identity: EtcdIdentity, logFile: string): EtcdProcess | undefined {
    if (!isAlive(identity)) return undefined;
    log('etcd %d is adopted', identity.pid);
    return new EtcdProcess(identity, goneOf(identity), logFile);
  }

  get isRunning(): boolean {
    return this.exit === undefined;
  }

  /** SIGTERM; after a while SIGKILL. Resolves when it has ended. */
  async stop(patienceMs = STOP_MS): Promise<EtcdExit> {
    this.#signal('SIGTERM');
    return (await this.#within(patienceMs)) ?? this.kill();
  }

  async kill(): Promise<EtcdExit> {
    this.#signal('SIGKILL');
    return this.exited;
  }

  /** For a member that was removed: it ends by itself, with exit code 0; what does not is made to. */
  async endAfterRemoval(): Promise<EtcdExit> {
    return (await this.#within(REMOVED_EXIT_MS)) ?? this.stop();
  }

  /** The last lines it wrote, for an error's message. */
  tail(): string {
    return tailOf(this.logFile);
  }

  #signal(signal: 'SIGTERM' | 'SIGKILL'): void {
    if (!this.isRunning || !isAlive(this.identity)) return;
    try {
      process.kill(this.identity.pid, signal);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
    }
  }

  async #within(ms: number): Promise<EtcdExit | undefined> {
    const stop = new AbortController();
    const timer = sleep(ms, undefined, { signal: stop.signal }).catch(() => undefined);
    try {
      return await Promise.race([this.exited, timer]);
    } finally {
      stop.abort();
    }
  }
}

export function describeExit(code: number | null, signal: NodeJS.Signals | null): EtcdExit {
  if (signal === 'SIGTERM' || signal === 'SIGINT') return { reason: 'stopped', text: `stopped by ${signal}` };
  if (signal !== null) return { reason: 'killed', text: `killed by ${signal}` };
  if (code === 0) return { reason: 'removed', text: 'exit 0: it was removed from the cluster' };
  if (code === 1)
    return { reason: 'refused', text: 'exit 1: its configuration or its cluster does not allow it to run' };
  if (code === 2) return { reason: 'panic', text: 'exit 2: it panicked, or did not know a flag' };
  return { reason: 'unknown', text: `exit ${code}` };
}

/** etcd logs JSON; what an operator needs of a line is its message and its error. */
export function tailOf(logFile: string): string {
  let text: string;
  try {
    text = readFileSync(logFile, 'utf8').slice(-TAIL_BYTES);
  } catch {
    return '';
  }
  const lines = text.split('\n').filter((line) => line.trim() !== '');
  // It prints its usage after the one line that says what was wrong with a flag.
  const flag = lines.find((line) =>
    /^(?:flag provided but not defined|invalid value |error verifying flags)/.test(line),
  );
  if (flag !== undefined) return flag;
  const telling = lines.filter((line) => /"level":"(?:warn|error|fatal|panic|dpanic)"|^panic|^[^{]/.test(line));
  return (telling.length > 0 ? telling : lines).slice(-TAIL_LINES).map(shorten).join('\n');
}

function shorten(line: string): string {
  try {
    const { level, msg, error } = JSON.parse(line) as { level?: string; msg?: string; error?: string };
    return `${level ?? ''}: ${msg ?? ''}${error === undefined ? '' : `: ${error}`}`;
  } catch {
    return line.slice(0, 400);
  }
}

function keepFormerLog(logFile: string): void {
  if (existsSync(logFile) && statSync(logFile).size > 0) renameSync(logFile, `${logFile}.1`);
}

function exitOf(child: ChildProcess): Promise<EtcdExit> {
  return new Promise((resolve) => {
    child.once('exit', (code, signal) => resolve(describeExit(code, signal)));
  });
}

function spawned(child: ChildProcess, path: string): Promise<void> {
  return new Promise((resolve, reject) => {
    child.once('spawn', resolve);
    child.once('error', (error) =>
      reject(new EtcdProcessError(`cannot run ${path}: ${error.message}`, { cause: error })),
    );
  });
}

async function goneOf(identity: EtcdIdentity): Promise<EtcdExit> {
  while (isAlive(identity)) await sleep(POLL_MS);
  return { reason: 'unknown', text: 'it ended; its exit code went to the agent that started it' };
}
