import type { ExecutionContext } from 'ava';
import type { Observable, Subscription } from 'rxjs';
import type { Listing } from '../../src/index.ts';
import { until } from './wait.ts';

/** What a subscriber of a live list was told. */
export class Seen<L extends Listing = Listing> {
  readonly listings: L[] = [];
  error: unknown;
  completed = false;
  readonly #subscription: Subscription;

  constructor(list: Observable<L>) {
    this.#subscription = list.subscribe({
      next: (listing) => this.listings.push(listing),
      error: (error: unknown) => {
        this.error = error;
      },
      complete: () => {
        this.completed = true;
      },
    });
  }

  get last(): L | undefined {
    return this.listings.at(-1);
  }

  /** The names as last told, with a space between. */
  get names(): string | undefined {
    return this.last?.children.join(' ');
  }

  get ended(): boolean {
    return this.completed || this.error !== undefined;
  }

  stop(): void {
    this.#subscription.unsubscribe();
  }

  /** Waits for the list to hold just these names, separated by spaces. */
  async untilNames(names: string, what = 'a subscriber'): Promise<L> {
    await until(() => this.names === names && this.last?.status === 'live', `${what} to see "${names}"`).catch(
      (error) => {
        throw new Error(`${error.message}; it saw "${this.names}" ${this.last?.status}`, { cause: this.error });
      },
    );
    return this.last as L;
  }

  async untilStatus(status: Listing['status']): Promise<L> {
    await until(() => this.last?.status === status, `a ${status} listing`);
    return this.last as L;
  }

  untilEnd(): Promise<unknown> {
    return until(() => this.ended && { error: this.error }, 'the end of a list');
  }
}

/** Subscribes for the length of a test. */
export function see<L extends Listing>(t: ExecutionContext, list: Observable<L>): Seen<L> {
  const seen = new Seen(list);
  t.teardown(() => seen.stop());
  return seen;
}
