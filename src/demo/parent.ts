import type { Answer, Order } from './tasks.ts';

const REPORT_PERIOD_MS = 100;

/**
 * The demo, as one of its processes sees it. Every process leaves when the demo asks for it with SIGTERM, and also when the demo is
 * gone, however that came: the channel between them closes then.
 */
export class Parent<Report> {
  /** Aborted by SIGTERM. */
  readonly stopped: AbortSignal;
  /** Aborted when the demo is gone. */
  readonly gone: AbortSignal;
  /** For the watchers: how many of each kind there should be. For a host: how many voters its cluster should have. */
  onGrow: (to: number) => void = () => {};
  #makeReport: (() => Report) | undefined;

  constructor() {
    const stopped = new AbortController();
    const gone = new AbortController();
    this.stopped = stopped.signal;
    this.gone = gone.signal;
    process.on('SIGTERM', () => stopped.abort());
    process.once('disconnect', () => gone.abort());
    process.on('message', (order: Order) => {
      if (order.type === 'grow') this.onGrow(order.to);
      else this.report(order.asked);
    });
    if (!process.connected) gone.abort();
  }

  /** From now on reports go out now and then, at once when asked, and whenever `report` is called. */
  ready(makeReport: () => Report): void {
    this.#makeReport = makeReport;
    this.report();
    setInterval(() => this.report(), REPORT_PERIOD_MS).unref();
  }

  report(asked?: number): void {
    if (this.#makeReport) this.#send({ type: 'report', report: this.#makeReport(), asked });
  }

  /** Ends this process, once the demo knows why. */
  fail(error: unknown): void {
    const reason = error instanceof Error ? error.message : String(error);
    this.#send({ type: 'failed', reason }, () => process.exit(1));
  }

  #send(answer: Answer<Report>, onSent: () => void = () => {}): void {
    if (process.connected) process.send?.(answer, undefined, undefined, onSent);
    else onSent();
  }
}

/** Resolves when `signal` is aborted. */
export function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
}
