import { sleep } from '../../core/clock.ts';
import type { Connection, InEpoch } from '../../core/connection.ts';
import type { Lock } from '../../core/election.ts';
import { CompactedError } from '../../core/errors.ts';
import { debugLog, messageOf } from '../../core/log.ts';
import { readSnapshot } from '../../core/snapshot.ts';
import { firstKey, type KeyValue, type TxnResult } from '../../core/store.ts';
import { type Child, type Children, makeChild, sameChild } from '../children.ts';
import { Directory } from '../directory.ts';
import type { DirectoryKeys, MirrorKeys } from '../keys.ts';
import { readDirectory } from '../read-directory.ts';
import type { Telemetry } from '../stats.ts';
import { decodeMarker, type Marker, type Replica } from './marker.ts';

const log = debugLog('audit');

/** The contenders further back would look in after hours: they need not ask for their place. */
const RANKS = 8;

export interface AuditContext {
  readonly connection: Connection;
  readonly telemetry: Telemetry;
  readonly directory: DirectoryKeys;
  readonly mirror: MirrorKeys;
  readonly withValues: boolean;
  readonly ttlMs: () => number;
  /** A master that writes no marker is not to blame where nobody could. */
  readonly isStoreWritable: () => Promise<boolean>;
  /** Our own place in line, while we have one and do not lead. */
  readonly lock: () => Lock | undefined;
  /** The directory as the mirror tells it. */
  readonly replica: () => Replica | undefined;
}

/**
 * Finds out a master that holds its lock and yet does not mirror. Whoever is k-th in line looks every ttl × 2^k, so that the cost is
 * bounded however many wait: it reads the directory, waits one ttl, and compares with what the marker says by then. If the mirror is
 * behind, the incumbent's lock is deleted. An incumbent is judged only after a whole ttl in office.
 */
export class MirrorAudit {
  readonly #context: AuditContext;
  #stop = new AbortController();

  constructor(context: AuditContext) {
    this.#context = context;
  }

  /** Begins, or begins again: the place in line may be another one. */
  restart(): void {
    this.stop();
    this.#stop = new AbortController();
    void this.#run(this.#stop.signal);
  }

  stop(): void {
    this.#stop.abort();
  }

  async #run(signal: AbortSignal): Promise<void> {
    const { connection, mirror, ttlMs } = this.#context;
    while (!signal.aborted) {
      try {
        await sleep(connection.clock, ttlMs() * 2, signal);
        const rank = await this.#rank(signal);
        if (rank === undefined) return;
        await sleep(connection.clock, ttlMs() * (2 ** rank - 2), signal);
        await this.#audit(signal);
      } catch (error) {
        if (!signal.aborted) log('audit of %s: %s', mirror.marker, messageOf(error));
        if (connection.closing.aborted) return;
      }
    }
  }

  /** 1 for the next in line; undefined for the master, and for those too far back. */
  async #rank(signal: AbortSignal): Promise<number | undefined> {
    const own = this.#context.lock();
    const line = await this.#context.connection.range(
      {
        type: 'range',
        target: { prefix: this.#context.mirror.locks },
        keysOnly: true,
        orderByCreate: true,
        limit: RANKS + 1,
      },
      { signal },
    );
    const rank = line.kvs.findIndex((kv) => kv.key === own?.key);
    return rank > 0 ? rank : undefined;
  }

  async #audit(signal: AbortSignal): Promise<void> {
    const { connection, directory, mirror, withValues, ttlMs } = this.#context;
    const seen = await this.#look(signal);
    const before = incumbentOf(seen);
    if (!before || before.key === this.#context.lock()?.key) return;
    if (!firstKey(seen.results[1]) && !(await this.#context.isStoreWritable())) return;
    const real = await readDirectory(connection, directory, undefined, withValues, { signal });
    await sleep(connection.clock, ttlMs(), signal);
    const now = await this.#look(signal);
    const incumbent = incumbentOf(now);
    if (incumbent?.createRevision !== before.createRevision || now.epoch !== real.epoch) return;
    const stored = firstKey(now.results[1]);
    const marker = stored && decodeMarker(stored.value, stored.modRevision);
    // A marker beyond our reading shows that its writer is alive; to write none in a whole ttl is no way to be master.
    if (marker && marker.keys.to >= real.revision) return;
    const told = marker && (await this.#toldBy(marker, signal));
    if (marker && (!told || sameKeys(told, real.directory.children))) return;
    if (!marker && !(await this.#context.isStoreWritable())) return;
    await this.#depose(incumbent, signal);
    log('%s ends at %o, the directory changed by %d', mirror.marker, marker?.keys.to, real.revision);
  }

  /**
   * The directory as the mirror's watchers have it: our own copy, or, where that was read later than the marker was written, the
   * past. Once that is compacted a later copy must do, which misses what happened in between.
   */
  async #toldBy(marker: Marker, signal: AbortSignal): Promise<Children | undefined> {
    const { connection, directory: keys, withValues } = this.#context;
    const revision = marker.keys.to;
    const replica = this.#context.replica();
    if (replica?.revisions.keys === revision) return replica.children;
    try {
      const past = await readSnapshot(connection, [{ prefix: keys.children }], {
        keysOnly: !withValues,
        revision,
        signal,
      });
      const directory = new Directory({ keys: keys.children, dirs: keys.addedBelow }, withValues, {
        keys: revision,
        dirs: 0,
      });
      directory.load('keys', past.targets[0] ?? []);
      return directory.children;
    } catch (error) {
      if (!(error instanceof CompactedError)) throw error;
      return replica && replica.revisions.keys > revision ? replica.children : undefined;
    }
  }

  #look(signal: AbortSignal): Promise<InEpoch<TxnResult>> {
    const { connection, mirror } = this.#context;
    return connection.txn(
      {
        compares: [],
        success: [
          { type: 'range', target: { prefix: mirror.locks }, keysOnly: true, orderByCreate: true, limit: 1 },
          { type: 'range', target: { key: mirror.marker } },
        ],
      },
      { signal },
    );
  }

  async #depose(incumbent: KeyValue, signal: AbortSignal): Promise<void> {
    const { connection, mirror, telemetry } = this.#context;
    const answer = await connection.txn(
      {
        compares: [{ target: { key: incumbent.key }, field: 'create', op: '=', operand: incumbent.createRevision }],
        success: [{ type: 'delete', target: { key: incumbent.key } }],
      },
      { signal },
    );
    if (!answer.succeeded) return;
    telemetry.count('mirror.usurpations');
    telemetry.say('warn', `${mirror.marker}: its master ${incumbent.key} holds the lock and mirrors nothing; deposed`);
  }
}

/** Whether both agree about registrations; added directories lie elsewhere and may be ahead or behind. */
function sameKeys(a: Children, b: Children): boolean {
  const names = new Set([...a.names(), ...b.names()]);
  const registered = (child: Child | undefined) => makeChild({ ...child, added: false });
  for (const name of names) if (!sameChild(registered(a.get(name)), registered(b.get(name)))) return false;
  return true;
}

function incumbentOf(answer: TxnResult): KeyValue | undefined {
  return firstKey(answer.results[0]);
}
