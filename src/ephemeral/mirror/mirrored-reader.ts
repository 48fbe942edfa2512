import { sleep } from '../../core/clock.ts';
import type { EphemeralError } from '../../core/errors.ts';
import { RELIST_JITTER_MS } from '../../core/list-watch.ts';
import { debugLog, messageOf } from '../../core/log.ts';
import type { Session } from '../../core/session.ts';
import type { Watch } from '../../core/watch-hub.ts';
import { DirectReader } from '../direct-reader.ts';
import type { MirrorKeys } from '../keys.ts';
import type { Reader, ReaderContext, ReaderEvents, View } from '../reader.ts';
import { Candidate } from './candidate.ts';
import { Follower } from './follower.ts';
import type { Marker } from './marker.ts';

const log = debugLog('mirror');

/** So long (ms) after the directory was read a master has to write its first marker before its watchers go direct. */
const FIRST_MARKER_MS = 1_000;

export interface MirroredContext extends ReaderContext {
  readonly mirror: MirrorKeys;
  /** Undefined for a client that never stands for election. */
  readonly session: Session | undefined;
}

/**
 * Follows a directory through its mirror as long as the mirror can be relied on, else from its own keys: where there is no marker,
 * or, for a reader that is not in line for mastership and so would not notice its end, no live master behind it.
 */
export class MirroredReader implements Reader {
  readonly #context: MirroredContext;
  readonly #events: ReaderEvents;
  readonly #follower: Follower;
  readonly #stop = new AbortController();
  #candidate: Candidate | undefined;
  #direct: DirectReader | undefined;
  /** Waiting to go direct. */
  #leaving: AbortController | undefined;
  /** The master whose lock this reader watches, when it is not in line itself. */
  #watched: { readonly lock: string; watch: Watch | undefined } | undefined;

  constructor(context: MirroredContext, events: ReaderEvents) {
    this.#context = context;
    this.#events = events;
    this.#follower = new Follower(context, {
      onRead: (read) => events.onRead(read),
      onChanged: () => events.onChanged(),
      onMarker: (marker) => this.#judge(marker),
      onRefused: (error) => this.#refused(error),
    });
    const { session } = context;
    if (!session) return;
    this.#candidate = new Candidate({
      ...context,
      session,
      replica: () => (this.#direct ? undefined : this.#follower.replica),
      onRefused: (error) => this.#stepBack(error),
    });
  }

  get view(): View | undefined {
    const direct = this.#direct?.view;
    if (direct) return direct;
    const { replica, epoch } = this.#follower;
    return replica && { children: replica.children, revisions: replica.revisions, epoch };
  }

  isCurrent(): Promise<boolean> {
    return (this.#direct ?? this.#follower).isCurrent();
  }

  async close(): Promise<void> {
    this.#stop.abort();
    this.#leaving?.abort();
    this.#follower.close();
    this.#unwatchMaster();
    await this.#direct?.close();
    await this.#candidate?.close();
  }

  /** Whether what stands now can be relied on, told after each marker. */
  #judge(marker: Marker | undefined): void {
    if (this.#stop.signal.aborted) return;
    if (!marker) {
      this.#unwatchMaster();
      this.#goDirect(this.#follower.hadMarker ? 0 : FIRST_MARKER_MS);
    } else if (this.#candidate) this.#goMirrored();
    else void this.#relyOn(marker.lock);
  }

  #goMirrored(): void {
    this.#leaving?.abort();
    this.#leaving = undefined;
    const direct = this.#direct;
    if (!direct) return;
    log('%s is there again', this.#context.mirror.marker);
    this.#direct = undefined;
    const { view } = direct;
    void direct.close();
    this.#follower.attach(view && { children: view.children, revisions: { ...view.revisions } }, view?.epoch);
  }

  /** Spread out: every watcher of the directory does so at the same time. */
  #goDirect(afterMs: number): void {
    if (this.#direct || this.#leaving) return;
    this.#leaving = new AbortController();
    const { signal } = this.#leaving;
    const { clock } = this.#context.connection;
    sleep(clock, afterMs + clock.random() * RELIST_JITTER_MS, signal)
      .then(() => {
        if (signal.aborted || this.#stop.signal.aborted) return;
        this.#leaving = undefined;
        log('%s cannot be relied on, watching %s itself', this.#context.mirror.marker, this.#context.path);
        this.#context.telemetry.count('list.relists');
        this.#follower.detach();
        this.#direct = new DirectReader(this.#context, this.#events);
      })
      .catch(() => {});
  }

  #stepBack(error: EphemeralError): void {
    const candidate = this.#candidate;
    if (!candidate) return;
    this.#candidate = undefined;
    this.#context.telemetry.say('warn', `${this.#context.path}: not standing for its mirror: ${error.message}`);
    void candidate.close();
    this.#judge(this.#follower.marker);
  }

  /** Watches one key: the lock of the master whose name is in the marker. */
  async #relyOn(lock: string): Promise<void> {
    if (this.#watched?.lock === lock) return;
    this.#unwatchMaster();
    const watched: { readonly lock: string; watch: Watch | undefined } = { lock, watch: undefined };
    this.#watched = watched;
    const { connection, hub } = this.#context;
    try {
      const { signal } = this.#stop;
      const answer = await connection.range({ type: 'range', target: { key: lock }, keysOnly: true }, { signal });
      if (this.#watched !== watched || signal.aborted) return;
      if (answer.kvs.length === 0) return this.#masterGone(lock);
      watched.watch = hub.watch({ key: lock }, answer.header.revision + 1, answer.epoch, {
        onEvents: (events) => {
          if (events.some((event) => event.type === 'delete')) this.#masterGone(lock);
        },
        onGap: () => {
          this.#watched = undefined;
          void this.#relyOn(lock);
        },
        onRefused: () => this.#masterGone(lock),
      });
      this.#goMirrored();
    } catch (error) {
      log('lock %s: %s', lock, messageOf(error));
      if (this.#watched === watched) this.#masterGone(lock);
    }
  }

  /** Its name is kept: only a marker by another master is looked at again. */
  #masterGone(lock: string): void {
    if (this.#stop.signal.aborted) return;
    log('the master with lock %s is gone', lock);
    this.#watched?.watch?.close();
    this.#goDirect(0);
  }

  #unwatchMaster(): void {
    this.#watched?.watch?.close();
    this.#watched = undefined;
  }

  #refused(error: EphemeralError): void {
    void this.close();
    this.#events.onRefused(error);
  }
}
