/** A worker thread, with a connection of its own, that renews the lease while this thread cannot. */
import { MessageChannel, type MessagePort, receiveMessageOnPort, Worker } from 'node:worker_threads';
import { systemClockOrigin } from '../core/clock.ts';
import { StoreError } from '../core/errors.ts';
import type { Standby, StandbyNews } from '../core/standby.ts';
import type { Lease } from '../core/store.ts';
import type { Resolved } from './options.ts';
import { CELL, CELLS, type StandbyOrder, type StandbyReport, type StandbySetup } from './standby-messages.ts';

export interface WorkerStandbyOptions {
  readonly ttlMs: number;
  readonly stallLimitMs: number;
  readonly grpcOptions: Readonly<Record<string, string | number>> | undefined;
  readonly probeKey: string | undefined;
  /** The thread ended although nobody had closed it: from here on this thread renews alone. */
  readonly onFailure: (error: Error) => void;
}

/** The main thread shows so often that it moves. */
const MOVE_MS = 100;

/** Built, it lies beside this file as JavaScript; from the sources, as this file is itself. */
const PROGRAM = new URL(
  import.meta.url.endsWith('.ts') ? './standby-program.ts' : './standby-program.js',
  import.meta.url,
);

/** Node's own flags that say which program the process runs: the thread has its own. */
const PROGRAM_FLAGS = /^(-e|-p|-pe|--eval|--print|--input-type)\b/;

export class WorkerStandby implements Standby {
  readonly #worker: Worker;
  readonly #port: MessagePort;
  readonly #cells: BigInt64Array;
  readonly #moving: NodeJS.Timeout;
  #leaseId: string | undefined;
  #news: StandbyNews | undefined;
  #isClosed = false;

  private constructor(worker: Worker, port: MessagePort, cells: BigInt64Array, onFailure: (error: Error) => void) {
    this.#worker = worker;
    this.#port = port;
    this.#cells = cells;
    this.#moving = setInterval(() => {
      Atomics.add(cells, CELL.moves, 1n);
      this.#hear();
    }, MOVE_MS);
    const failed = (error: Error) => {
      if (this.#isClosed) return;
      onFailure(error);
      void this.close();
    };
    worker.on('error', failed);
    worker.on('exit', (code) => failed(new Error(`it exited with code ${code}`)));
  }

  /** @throws StoreError when the thread cannot be started */
  static async start(options: WorkerStandbyOptions): Promise<WorkerStandby> {
    const { ttlMs, stallLimitMs, grpcOptions, probeKey, onFailure } = options;
    const shared = new SharedArrayBuffer(CELLS * BigInt64Array.BYTES_PER_ELEMENT);
    const { port1, port2 } = new MessageChannel();
    const setup: StandbySetup = { ttlMs, stallLimitMs, grpcOptions, probeKey, origin: systemClockOrigin(), shared };
    const worker = new Worker(PROGRAM, {
      name: 'ephemeral-standby',
      workerData: { setup, port: port2 },
      transferList: [port2],
      execArgv: withoutProgram(process.execArgv),
    });
    try {
      await new Promise<void>((resolve, reject) => {
        worker.once('message', () => resolve());
        worker.once('error', reject);
        worker.once('exit', (code) => reject(new Error(`it exited with code ${code}`)));
      });
    } catch (cause) {
      port1.close();
      throw new StoreError(
        `the worker thread for stallLimit cannot be started (${(cause as Error).message}): is ${PROGRAM.pathname} there, or bundled away?`,
        { cause },
      );
    }
    worker.removeAllListeners();
    return new WorkerStandby(worker, port1, new BigInt64Array(shared), onFailure);
  }

  /** Where and as whom this thread connects now. */
  dial({ endpoints, credentials, auth }: Resolved): void {
    const hosts = endpoints.map(({ url }) => url);
    this.#order({ do: 'dial', hosts, credentials: credentials && { ...credentials }, auth: auth && { ...auth } });
  }

  guard(lease: Lease, renewedAtMs: number): void {
    this.#leaseId = lease.id;
    this.#news = undefined;
    this.renewed(renewedAtMs);
    this.#order({ do: 'guard', lease, renewedAtMs });
  }

  renewed(sentMs: number): void {
    Atomics.store(this.#cells, CELL.renewedAtMs, BigInt(Math.floor(sentMs)));
  }

  takeNews(): StandbyNews | undefined {
    this.#hear();
    const news = this.#news;
    this.#news = undefined;
    return news;
  }

  release(): void {
    this.#leaseId = undefined;
    this.#news = undefined;
    this.#order({ do: 'release' });
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    clearInterval(this.#moving);
    this.#port.close();
    await this.#worker.terminate();
  }

  #order(order: StandbyOrder): void {
    if (!this.#isClosed) this.#port.postMessage(order);
  }

  /** Synchronously: what came while the event loop stood still must be known before anything is judged. */
  #hear(): void {
    for (;;) {
      const received = this.#isClosed ? undefined : receiveMessageOnPort(this.#port);
      if (!received) return;
      const report = received.message as StandbyReport;
      if (report.is === 'ready' || report.leaseId !== this.#leaseId) continue;
      if (report.is === 'renewed') this.#news = { ...this.#news, renewedAtMs: report.sentMs };
      else if (report.is === 'gone') this.#news = { ...this.#news, isGone: true };
      else this.#news = { ...this.#news, verified: { keys: report.keys, askedAtMs: report.askedAtMs } };
    }
  }
}

function withoutProgram(flags: readonly string[]): string[] {
  return flags.filter(
    (flag, i) => !PROGRAM_FLAGS.test(flag) && !/^(-e|-p|-pe|--eval|--print)$/.test(flags[i - 1] ?? ''),
  );
}
