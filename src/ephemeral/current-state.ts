import { type Observable, ReplaySubject } from 'rxjs';

/** A state and its changes. Each subscriber hears the present one first, also when that was the last. */
export class CurrentState<S> {
  readonly changes$: Observable<S>;
  readonly #subject = new ReplaySubject<S>(1);
  #value: S;

  constructor(value: S) {
    this.#value = value;
    this.#subject.next(value);
    this.changes$ = this.#subject.asObservable();
  }

  get value(): S {
    return this.#value;
  }

  next(value: S): void {
    this.#value = value;
    this.#subject.next(value);
  }

  complete(): void {
    this.#subject.complete();
  }
}
