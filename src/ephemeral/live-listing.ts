import { Observable, type Subscriber } from 'rxjs';
import type { Listing, LiveListing } from './api.ts';

/** An Observable of listings that can also be read with `for await`: a slow reader gets the newest, whatever it missed. */
export class LiveListingObservable<L extends Listing> extends Observable<L> implements LiveListing<L> {
  constructor(subscribe: (subscriber: Subscriber<L>) => () => void) {
    super(subscribe);
  }

  [Symbol.asyncIterator](): AsyncIterator<L> {
    let newest: { readonly listing: L } | undefined;
    let ending: { readonly error?: unknown } | undefined;
    let wake: (() => void) | undefined;
    const woken = () => {
      wake?.();
      wake = undefined;
    };
    const subscription = this.subscribe({
      next: (listing) => {
        newest = { listing };
        woken();
      },
      error: (error: unknown) => {
        ending = { error };
        woken();
      },
      complete: () => {
        ending = {};
        woken();
      },
    });
    const stop = async (): Promise<IteratorResult<L>> => {
      subscription.unsubscribe();
      ending = {};
      newest = undefined;
      woken();
      return { done: true, value: undefined };
    };
    return {
      next: async () => {
        while (!newest && !ending) {
          await new Promise<void>((resolve) => {
            wake = resolve;
          });
        }
        if (newest) {
          const { listing } = newest;
          newest = undefined;
          return { done: false, value: listing };
        }
        const end = ending;
        ending = {};
        if (end && 'error' in end) throw end.error;
        return { done: true, value: undefined };
      },
      return: stop,
    };
  }
}
