/** A fleet of clients in a process of its own, given orders line by line. */
import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import type { Answers, Order } from './fleet/protocol.ts';

interface Pending {
  resolve(result: never): void;
  reject(error: Error): void;
}

const LOG_TAIL_CHARS = 4_000;
const CLOSE_PATIENCE_MS = 15_000;

const alive = new Set<FleetProcess>();
let isOver = false;

/** Kills all there are, and lets no more be started. */
export async function endFleets(): Promise<void> {
  isOver = true;
  const ends = [...alive].map(({ ended }) => ended);
  for (const fleet of alive) fleet.kill();
  await Promise.all(ends);
}

export class FleetProcess {
  readonly name: string;
  readonly ended: Promise<void>;
  readonly #child: ChildProcess;
  readonly #pending = new Map<number, Pending>();
  #lastId = 0;
  #log = '';

  constructor(name: string, command: readonly string[]) {
    this.name = name;
    if (isOver) throw new Error('the benchmark is over');
    const [program = '', ...args] = command;
    const child = spawn(program, args, { stdio: ['pipe', 'pipe', 'pipe'] });
    this.#child = child;
    alive.add(this);
    this.ended = new Promise((resolve) => child.once('close', () => resolve()));
    // Its end is told by 'close'.
    child.stdin.on('error', () => {});
    child.stderr.on('data', (chunk: Buffer) => {
      this.#log = (this.#log + chunk.toString()).slice(-LOG_TAIL_CHARS);
    });
    createInterface({ input: child.stdout }).on('line', (line) => this.#answered(line));
    child.once('error', (error) => this.#ended(String(error)));
    child.once('close', (code, signal) => this.#ended(`ended with ${signal ?? code}`));
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  get running(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null;
  }

  order<O extends Order>(order: O): Promise<Answers[O['op']]> {
    this.#lastId += 1;
    const id = this.#lastId;
    return new Promise((resolve, reject) => {
      if (!this.running) return reject(new Error(`${this.name} has ended:\n${this.#log}`));
      this.#pending.set(id, { resolve, reject });
      this.#child.stdin?.write(`${JSON.stringify({ id, order })}\n`);
    });
  }

  /** Lets it give back what it holds, within bounds, and ends it. */
  async close(): Promise<void> {
    if (!this.running) return;
    const timer = setTimeout(() => this.kill(), CLOSE_PATIENCE_MS);
    await this.order({ op: 'close' }).catch(() => {});
    this.#child.stdin?.end();
    await this.ended;
    clearTimeout(timer);
  }

  kill(): void {
    this.#child.kill('SIGKILL');
  }

  #answered(line: string): void {
    let answer: { id: number; result?: unknown; error?: string };
    try {
      answer = JSON.parse(line) as typeof answer;
    } catch {
      this.#log = (this.#log + line).slice(-LOG_TAIL_CHARS);
      return;
    }
    const pending = this.#pending.get(answer.id);
    this.#pending.delete(answer.id);
    if (answer.error !== undefined) pending?.reject(new Error(`${this.name}: ${answer.error}`));
    else pending?.resolve(answer.result as never);
  }

  #ended(how: string): void {
    alive.delete(this);
    const error = new Error(`${this.name} ${how}:\n${this.#log}`);
    for (const { reject } of this.#pending.values()) reject(error);
    this.#pending.clear();
  }
}
