import type { Observable } from 'rxjs';
import { abortable } from '../core/abortable.ts';
import { backoffMs } from '../core/backoff.ts';
import { sleep, type Timer } from '../core/clock.ts';
import {
  ClosedError,
  ConflictError,
  ConnectionError,
  concerning,
  type EphemeralError,
  PathExistsError,
  RevokedError,
  toEphemeralError,
  ValueTooLargeError,
} from '../core/errors.ts';
import { UnsettledWriteError } from '../core/fence.ts';
import { debugLog, messageOf } from '../core/log.ts';
import { onAbort } from '../core/on-abort.ts';
import { type Session, SessionLostError } from '../core/session.ts';
import { firstKey } from '../core/store.ts';
import type { WatchHub } from '../core/watch-hub.ts';
import type { CallOptions, Heartbeat, Registration, RegistrationState } from './api.ts';
import { Confirmations } from './confirmations.ts';
import { CurrentState } from './current-state.ts';
import { checkValue } from './options.ts';
import { OtherOwner } from './other-owner.ts';
import { type Held, judge, unchangedSince } from './ownership.ts';
import type { Telemetry } from './stats.ts';

const log = debugLog('registration');

/** A put-heartbeat goes out each 0.4 × ttl: two may be lost before a consumer that counts refreshes gives the key up. */
const PUT_FRACTION = 0.4;
/** A refusal that waiting may or may not mend (a permission taken away, a full store) is tried again at this pace. */
const RETRY = { firstMs: 100, maxMs: 1_000 };

export interface RegistrationContext {
  readonly session: Session;
  readonly hub: WatchHub;
  readonly telemetry: Telemetry;
  /** It is over: nothing more of it is in the store, or will be. */
  readonly onGone: (registration: OwnedKey) => void;
}

export interface OwnedKeyOptions {
  readonly path: string;
  readonly key: string;
  readonly value: string;
  readonly heartbeat: Heartbeat;
  /** Report a refusal instead of trying on: somebody waits for the first registration. */
  readonly isAwaited: boolean;
  /** The registration of before under this key, which is being removed: until it is gone, nothing is written. */
  readonly after: OwnedKey | undefined;
}

/**
 * One key of ours. Everything that happens to it (a new value, a lost lease, a missing key) marks it as unconfirmed; one loop then
 * brings the store in line with what is wanted, one write at a time, each over exactly what was last known to be there.
 */
export class OwnedKey implements Registration {
  readonly path: string;
  readonly #key: string;
  readonly #heartbeat: Heartbeat;
  readonly #context: RegistrationContext;
  readonly #state = new CurrentState<RegistrationState>('registering');
  readonly #off: readonly (() => void)[];
  readonly #gone = new AbortController();
  readonly #confirmations = new Confirmations();
  readonly #otherOwner: OtherOwner;
  #error: EphemeralError | undefined;
  #wanted: { readonly value: string; readonly version: number };
  #confirmed: { readonly value: string; readonly version: number; readonly atMs: number } | undefined;
  /** When the store last answered a write of ours: what was asked before may have been answered without it. */
  #answeredMs = Number.NEGATIVE_INFINITY;
  #held: Held | undefined;
  #needsWrite = true;
  #isAwaited: boolean;
  #isRunning = false;
  #isItsTurn = true;
  #isRemoving = false;
  #mayBeStored = false;
  #beat: Timer | undefined;
  /** A put heartbeat is due: the key is to have a later mod revision than this. */
  #beatAfter: number | undefined;

  constructor(context: RegistrationContext, options: OwnedKeyOptions) {
    this.path = options.path;
    this.#key = options.key;
    this.#heartbeat = options.heartbeat;
    this.#isAwaited = options.isAwaited;
    this.#wanted = { value: options.value, version: 1 };
    this.#context = context;
    const { session, hub } = context;
    this.#otherOwner = new OtherOwner(session, hub, options.key);
    this.#off = [
      session.alive.add((lease) => this.#onAlive(lease)),
      session.lost.add((error) => this.#lose(error)),
      session.verified.add((keys, askedAtMs) => this.#onVerified(keys, askedAtMs)),
      session.unverified.add(() => this.#onUnverified()),
      session.refused.add((error) => this.#refused(error)),
    ];
    if (options.after) this.#awaitEndOf(options.after);
    this.#kick();
  }

  get value(): string {
    return this.#wanted.value;
  }

  get state(): RegistrationState {
    return this.#state.value;
  }

  get state$(): Observable<RegistrationState> {
    return this.#state.changes$;
  }

  get error(): EphemeralError | undefined {
    return this.#error;
  }

  get isRemoving(): boolean {
    return this.#isRemoving;
  }

  /** Resolves when the store has the first value, rejects when it will not have it. */
  whenRegistered(): Promise<void> {
    return this.#confirmations.when(1);
  }

  async update(value: string, options: CallOptions = {}): Promise<void> {
    checkValue(this.path, value);
    options.signal?.throwIfAborted();
    if (this.#isRemoving) throw new ClosedError(`${this.path} was removed: register it again with addKey`);
    this.#wanted = { value, version: this.#wanted.version + 1 };
    this.#needsWrite = true;
    if (this.state === 'registered') this.#enter('registering', undefined);
    const confirmed = this.#confirmations.when(this.#wanted.version);
    this.#kick();
    await abortable(confirmed, options.signal);
  }

  async remove(): Promise<void> {
    if (!this.#isRemoving) {
      this.#isRemoving = true;
      this.#otherOwner.stop();
      this.#beat?.clear();
      this.#enter('removed', undefined);
      this.#confirmations.end(() => new ClosedError(`${this.path} was removed before the store had its value`));
      this.#kick();
    }
    const { session } = this.#context;
    const { connection } = session;
    if (this.#gone.signal.aborted || !connection.link) return;
    await new Promise<void>((resolve) => {
      const done = () => {
        for (const off of offs) off();
        resolve();
      };
      const offs = [connection.linkDown.add(done), session.refused.add(done), onAbort(this.#gone.signal, done)];
    });
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.remove();
  }

  /** The client closes: its lease, and every key on it, is about to be revoked. */
  abandon(): void {
    this.#isRemoving = true;
    this.#otherOwner.stop();
    this.#confirmations.end(() => new ClosedError('the client was closed'));
    this.#fallSilent();
  }

  /** The lease was revoked, or could not be and will end by itself. */
  end(): void {
    this.#enter('removed', undefined);
    this.#end();
  }

  #awaitEndOf(before: OwnedKey): void {
    if (before.#gone.signal.aborted) return;
    this.#isItsTurn = false;
    const onGone = () => {
      this.#isItsTurn = true;
      this.#kick();
    };
    onAbort(before.#gone.signal, onGone);
  }

  #enter(state: RegistrationState, error: EphemeralError | undefined): void {
    const before = this.state;
    const reasonBefore = this.#error;
    this.#error = error;
    if (before === 'removed') return;
    // Why it is lost may turn out to be another thing than was thought: its owner acts upon the reason.
    const isNewReason = state === 'lost' && before === 'lost' && reasonBefore?.code !== error?.code;
    if (before === state && !isNewReason) return;
    log('%s: %s -> %s%s', this.path, before, state, error ? ` (${error.message})` : '');
    if (state === 'lost') this.#context.telemetry.say('warn', `${this.path} is not registered: ${error?.message}`);
    if (before === 'lost' && state === 'registered') {
      this.#context.telemetry.count('registration.again');
      this.#context.telemetry.say('info', `${this.path} is registered again`);
    }
    this.#state.next(state);
    if (state === 'removed') this.#state.complete();
  }

  #onAlive(lease: string): void {
    this.#otherOwner.stop();
    // On the lease of before the key may still stand: the session asks the store which keys do, and no write wakes anyone.
    const mayStand = this.#held?.lease === lease && this.#confirmed?.version === this.#wanted.version;
    if (!mayStand) this.#needsWrite = true;
    this.#kick();
  }

  #lose(error: EphemeralError): void {
    if (this.#isRemoving || this.state === 'lost' || !this.#confirmed) return;
    this.#enter('lost', error);
  }

  /** Also while a heartbeat's put cannot be made: what the store says of the key then counts all the same. */
  #onVerified(keys: ReadonlySet<string>, askedAtMs: number): void {
    const { session } = this.#context;
    if (this.#isRemoving || !this.#confirmed || this.#confirmed.atMs >= askedAtMs) return;
    const isSettled = !this.#needsWrite && !this.#isRunning && this.#held?.lease === session.leaseId;
    if (!isSettled && this.state !== 'registered') return;
    if (keys.has(this.#key)) {
      this.#confirm(this.#confirmed, askedAtMs);
      return;
    }
    if (this.#answeredMs >= askedAtMs) return;
    this.#lose(new RevokedError(`${this.path} was deleted or overwritten by someone else`));
    this.#held = undefined;
    this.#needsWrite = true;
    this.#kick();
  }

  #onUnverified(): void {
    const { connection, ttlMs } = this.#context.session;
    if (!this.#confirmed || this.#confirmed.atMs + ttlMs > connection.clock.now()) return;
    this.#lose(new ConnectionError(`${connection.store.endpoint} has not confirmed ${this.path} for a whole ttl`));
  }

  #refused(refusal: EphemeralError): void {
    const error = concerning(this.path, refusal);
    if (this.#isAwaited) this.#giveUp(error);
    else if (!this.#isRemoving) this.#enter('lost', error);
  }

  /** The first registration cannot be had: whoever waits for it is told, and nothing is left behind. */
  #giveUp(error: EphemeralError): void {
    this.#isAwaited = false;
    this.#confirmations.end(() => error);
    void this.remove();
  }

  #kick(): void {
    if (this.#isRunning || this.#gone.signal.aborted) return;
    this.#isRunning = true;
    void this.#run().finally(() => {
      this.#isRunning = false;
      // What came in after the loop's last look.
      if (this.#hasWork()) this.#kick();
    });
  }

  #hasWork(): boolean {
    if (!this.#isItsTurn || this.#gone.signal.aborted) return false;
    if (this.#context.session.connection.closing.aborted) return false;
    if (this.#isRemoving && !this.#mayBeStored) return true;
    return (
      this.#context.session.leaseId !== undefined &&
      (this.#isRemoving || this.#needsWrite) &&
      !this.#otherOwner.isAwaited
    );
  }

  async #run(): Promise<void> {
    const { session, telemetry } = this.#context;
    const { clock, closing } = session.connection;
    for (let failures = 0; this.#hasWork(); ) {
      try {
        if (this.#isRemoving) await this.#delete();
        else await this.#put();
        failures = 0;
      } catch (error) {
        if (closing.aborted || error instanceof SessionLostError) return;
        log('%s: %s', this.path, messageOf(error));
        if (this.#beatAfter !== undefined) telemetry.count('heartbeat.failed');
        if (error instanceof UnsettledWriteError) {
          this.#held = undefined;
          await session.settle(error.fence).catch(() => {});
          continue;
        }
        failures += 1;
        if (!this.#isRemoving) this.#failed(toEphemeralError(error));
        await sleep(clock, backoffMs(RETRY, failures, clock.random()), closing).catch(() => {});
      }
    }
  }

  async #put(): Promise<void> {
    const { session } = this.#context;
    const lease = session.leaseId;
    if (lease === undefined) throw new SessionLostError('there is no lease now');
    const { clock } = session.connection;
    const wanted = this.#wanted;
    const sentMs = clock.now();
    this.#mayBeStored = true;
    const answer = await session.write({
      compares: unchangedSince(this.#key, this.#held),
      success: [{ type: 'put', key: this.#key, value: wanted.value, lease }],
      failure: [{ type: 'range', target: { key: this.#key } }],
    });
    this.#answeredMs = clock.now();
    if (answer.succeeded) {
      // A key of ours that had to be made although it was confirmed had been taken away.
      if (!this.#held && this.#confirmed) this.#lose(new RevokedError(`${this.path} was deleted by someone else`));
      this.#held = { lease, modRevision: answer.header.revision };
      this.#needsWrite = this.#wanted !== wanted || (session.leaseId ?? lease) !== lease;
      this.#confirm(wanted, sentMs);
      this.#armBeat(sentMs);
      return;
    }
    const finding = judge(firstKey(answer.results[0]), (id) => session.isOurs(id));
    this.#held = finding.kind === 'ours' ? finding.held : undefined;
    if (finding.kind === 'foreign') await this.#yieldTo(finding.lease, answer.header.revision, answer.epoch);
    else if (finding.kind === 'ours' && finding.held.lease === lease && finding.value === wanted.value) {
      // The value alone does not tell a heartbeat that got lost from one that was done.
      if (this.#beatAfter !== undefined && finding.held.modRevision <= this.#beatAfter) return;
      this.#needsWrite = this.#wanted !== wanted || (session.leaseId ?? lease) !== lease;
      this.#confirm(wanted, sentMs);
      this.#armBeat(sentMs);
    }
  }

  async #delete(): Promise<void> {
    const { session } = this.#context;
    if (!this.#mayBeStored) return this.#end();
    const answer = await session.write({
      compares: unchangedSince(this.#key, this.#held),
      success: this.#held ? [{ type: 'delete', target: { key: this.#key } }] : [],
      failure: [{ type: 'range', target: { key: this.#key } }],
    });
    if (answer.succeeded) return this.#end();
    const finding = judge(firstKey(answer.results[0]), (id) => session.isOurs(id));
    if (finding.kind === 'ours') this.#held = finding.held;
    else this.#end();
  }

  #confirm(confirmed: { readonly value: string; readonly version: number }, atMs: number): void {
    this.#confirmed = { value: confirmed.value, version: confirmed.version, atMs };
    this.#isAwaited = false;
    this.#confirmations.confirm(confirmed.version);
    if (this.#isRemoving || this.#wanted.version !== confirmed.version) return;
    if (this.#beatAfter !== undefined && !this.#needsWrite) {
      this.#context.telemetry.count('heartbeat.done');
      this.#beatAfter = undefined;
    }
    this.#otherOwner.forget();
    // The lease may have been lost while the answer was under way: the key stands, yet nobody sees to it that it goes on standing.
    const { leaseId } = this.#context.session;
    if (leaseId !== undefined && (this.#held?.lease ?? leaseId) === leaseId) this.#enter('registered', undefined);
  }

  /** From the last write: that the key was seen to stand is no heartbeat to those who watch. */
  #armBeat(lastMs: number): void {
    if (this.#heartbeat !== 'put' || this.#isRemoving) return;
    const { session } = this.#context;
    const { clock } = session.connection;
    this.#beat?.clear();
    const dueMs = lastMs + session.ttlMs * PUT_FRACTION;
    this.#beat = clock.setTimeout(
      () => {
        this.#beatAfter = this.#held?.modRevision ?? 0;
        this.#needsWrite = true;
        this.#kick();
      },
      Math.max(0, dueMs - clock.now()),
    );
  }

  /** Somebody else holds the key: it is watched until it goes, or, the first time, until patience ends. */
  async #yieldTo(lease: string, revision: number, epoch: number): Promise<void> {
    const taken = `${this.path} is held by another owner`;
    if (!this.#isAwaited) this.#enter('lost', new ConflictError(`${taken}: ours comes back when that one goes`));
    const leftMs = await this.#otherOwner.patienceLeftMs(lease);
    if (this.#isRemoving) return;
    if (this.#isAwaited && leftMs <= 0) {
      const why = lease === '0' ? 'which hangs on no lease' : 'which has not expired';
      return this.#giveUp(new PathExistsError(`${taken}, ${why}: choose another name or delete that key`));
    }
    this.#otherOwner.await(revision, epoch, this.#isAwaited ? leftMs : undefined, () => {
      this.#needsWrite = true;
      this.#kick();
    });
  }

  /** The store refused a write, and nothing was written. */
  #failed(refusal: EphemeralError): void {
    const error = concerning(this.path, refusal);
    if (this.#isAwaited && !error.retryable) {
      this.#giveUp(error);
      return;
    }
    if (!(error instanceof ValueTooLargeError)) {
      if (!error.retryable) this.#enter('lost', error);
      return;
    }
    // Trying again would change nothing. The value of before stays, as its owner was told it would.
    const { version } = this.#wanted;
    this.#confirmations.refuse(version, error);
    this.#needsWrite = false;
    if (this.#confirmed) {
      this.#wanted = { value: this.#confirmed.value, version: this.#confirmed.version };
      this.#enter('registered', undefined);
    } else this.#enter('lost', error);
  }

  #end(): void {
    if (this.#gone.signal.aborted) return;
    // A reason of one's own spares the error, with its stack, that would be made in its place.
    this.#gone.abort('gone');
    this.#fallSilent();
    this.#context.onGone(this);
  }

  /** Hears nothing more of the session, nor of its own heartbeat. */
  #fallSilent(): void {
    for (const off of this.#off) off();
    this.#beat?.clear();
  }
}
