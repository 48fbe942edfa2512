import { type ChildProcess, fork } from 'node:child_process';
import { extname } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Answer, Order, ReportOf, Role, Task } from './tasks.ts';

// Run from the sources it is .ts, and from the installed package .js.
const ENTRY = fileURLToPath(new URL(`child${extname(import.meta.url)}`, import.meta.url));
const STDERR_TAIL_CHARS = 1_000;

export interface DemoProcessEvents<Report> {
  onReport(report: Report): void;
  onExit(): void;
}

/** One of the demo's processes, from the demo's side. */
export class DemoProcess<R extends Role> {
  readonly role: R;
  readonly pid: number;
  /** Resolves with the first report. Rejects when there is none, with the reason. */
  readonly ready: Promise<ReportOf[R]>;
  readonly exited: Promise<void>;
  /** The newest. */
  report: ReportOf[R] | undefined;
  /** What it said before it left on its own account. */
  failure: string | undefined;
  readonly #child: ChildProcess;
  readonly #awaited = new Map<number, (report: ReportOf[R]) => void>();
  #asked = 0;
  #stderr = '';

  constructor(task: Task & { readonly role: R }, events: DemoProcessEvents<ReportOf[R]>) {
    this.role = task.role;
    // A group of its own: Ctrl-C reaches the demo alone, which then ends the others in the right order.
    this.#child = fork(ENTRY, [JSON.stringify(task)], { stdio: ['ignore', 'ignore', 'pipe', 'ipc'], detached: true });
    this.pid = this.#child.pid ?? 0;
    this.#child.stderr?.on('data', (chunk) => {
      this.#stderr = (this.#stderr + chunk).slice(-STDERR_TAIL_CHARS);
    });
    this.exited = new Promise((resolve) => {
      this.#child.once('close', () => resolve());
      this.#child.once('error', (error) => {
        this.failure ??= error.message;
        if (this.#child.pid === undefined) resolve();
      });
    });
    this.ready = new Promise((resolve, reject) => {
      this.#child.on('message', (answer: Answer<ReportOf[R]>) => {
        if (answer.type === 'failed') {
          this.failure = answer.reason;
          return;
        }
        this.report = answer.report;
        resolve(answer.report);
        if (answer.asked !== undefined) this.#awaited.get(answer.asked)?.(answer.report);
        events.onReport(answer.report);
      });
      void this.exited.then(() => {
        reject(
          new Error(this.failure ?? `the ${this.role} ended unexpectedly: ${this.#stderr.trim() || 'it said nothing'}`),
        );
        events.onExit();
      });
    });
    this.ready.catch(() => {});
  }

  /** A report made after this call. */
  fresh(): Promise<ReportOf[R]> {
    const asked = ++this.#asked;
    return new Promise((resolve, reject) => {
      this.#awaited.set(asked, (report) => {
        this.#awaited.delete(asked);
        resolve(report);
      });
      void this.exited.then(() => reject(new Error(`the ${this.role} ended while it was asked for a report`)));
      this.#order({ type: 'report', asked });
    });
  }

  growTo(to: number): void {
    this.#order({ type: 'grow', to });
  }

  kill(signal: 'SIGTERM' | 'SIGKILL' | 'SIGSTOP'): void {
    this.#child.kill(signal);
  }

  /** SIGTERM, and SIGKILL for one that does not leave. */
  async end(patienceMs: number): Promise<void> {
    this.kill('SIGTERM');
    const timer = setTimeout(() => this.kill('SIGKILL'), patienceMs);
    await this.exited;
    clearTimeout(timer);
  }

  #order(order: Order): void {
    if (this.#child.connected) this.#child.send(order, () => {});
  }
}
