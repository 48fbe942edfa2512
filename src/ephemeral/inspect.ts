import type { Connection } from '../core/connection.ts';
import { InvalidOptionError, PathNotFoundError } from '../core/errors.ts';
import { parsePath, splitChild } from '../core/paths.ts';
import { readSnapshot } from '../core/snapshot.ts';
import type { KeyValue } from '../core/store.ts';
import type { CallOptions, Ephemeral } from './api.ts';
import type { Children } from './children.ts';
import { Directory } from './directory.ts';
import { type Internals, internals } from './internals.ts';
import { directoryKeys, type MirrorKind, mirrorKeys } from './keys.ts';
import { decodeMarker, touchedCount } from './mirror/marker.ts';

/** What is stored about a path, all of it read at one revision. A path may be a key and a directory at once. */
export interface PathStat {
  readonly path: string;
  readonly revision: number;
  readonly key?: KeyStat | undefined;
  readonly directory?: DirectoryStat | undefined;
}

export interface KeyStat {
  readonly value: string;
  /** Decimal; `'0'` when the key hangs on no lease. */
  readonly lease: string;
  /** Seconds the lease was granted for; undefined without a lease. */
  readonly ttl?: number | undefined;
  /** Seconds until it ends, unless it is renewed; undefined without a lease. */
  readonly secondsLeft?: number | undefined;
  readonly created: number;
  readonly modified: number;
  /** Writes since it was created, that one included. */
  readonly version: number;
}

export interface DirectoryStat {
  /** It was added, so that it stays when it is empty. */
  readonly added: boolean;
  readonly children: number;
  /** When a key below it was last written; 0 when there is none. Deletions leave no trace. */
  readonly modified: number;
  /** Each mirror of which anything is there. */
  readonly mirrors: readonly MirrorStat[];
}

export interface MirrorStat {
  readonly kind: MirrorKind;
  /** The marker's key. */
  readonly marker: string;
  /** What the marker tells; undefined without a marker, when watchers read the directory itself. */
  readonly told?: MarkerStat | undefined;
  /** The lock of who is master now, or next; undefined when nobody is. */
  readonly master?: { readonly lock: string; readonly lease: string; readonly created: number } | undefined;
  /** All with a lock, the master included. */
  readonly contenders: number;
  /** Children that the plain shadow lacks, and those that it has too many. */
  readonly missing: number;
  readonly surplus: number;
}

export interface MarkerStat {
  /** It tells of the directory's keys from after `from`, up to `to`. */
  readonly from: number;
  readonly to: number;
  readonly touched: number;
  /** The lock of the master that wrote it. */
  readonly lock: string;
}

const KINDS: readonly MirrorKind[] = ['names', 'values'];

/**
 * Reads what is stored about a path, for an operator's eyes.
 * @throws PathNotFoundError when there is neither a key nor a directory; InvalidPathError
 */
export async function inspect(client: Ephemeral, path: string, { signal }: CallOptions = {}): Promise<PathStat> {
  const { connection, namespace } = internalsOf(client);
  const parsed = parsePath(path, 'root allowed');
  const keys = directoryKeys(namespace, parsed);
  const mirrors = KINDS.map((kind) => ({ kind, ...mirrorKeys(namespace, parsed, kind) }));
  const { targets, revision } = await readSnapshot(
    connection,
    [
      ...(parsed === '' ? [] : [{ key: namespace + parsed, withValue: true }]),
      { key: keys.added },
      { prefix: keys.addedBelow },
      { prefix: keys.children },
      ...mirrors.flatMap(({ marker, locks }) => [
        { key: marker, withValue: true },
        { prefix: marker },
        { prefix: locks },
      ]),
    ],
    { keysOnly: true, signal },
  );
  const [own = [], added = [], addedBelow = [], children = [], ...mirrored] =
    parsed === '' ? [[], ...targets] : targets;
  const found = childrenOf(keys, addedBelow, children);
  const [kv] = own;
  if (kv === undefined && added.length === 0 && found.size === 0) {
    throw new PathNotFoundError(
      `nothing is at "${path}": neither a key, nor an added directory, nor anything below it`,
    );
  }
  return {
    path,
    revision,
    key: kv && (await keyStat(connection, kv, signal)),
    directory:
      added.length === 0 && found.size === 0
        ? undefined
        : {
            added: added.length > 0,
            children: found.size,
            modified: newestOf(children, keys.children),
            mirrors: mirrors.flatMap(({ kind, marker }, index) => {
              const [markers = [], shadow = [], locks = []] = mirrored.slice(index * 3);
              return mirrorStat(kind, marker, markers[0], shadow, locks, found) ?? [];
            }),
          },
  };
}

function internalsOf(client: Ephemeral): Internals {
  const found = internals.get(client);
  if (found === undefined) throw new InvalidOptionError('only a client that this library made can be inspected');
  return found;
}

/** Of the keys that a path could name: below the root lie our own, too. */
function newestOf(kvs: readonly KeyValue[], prefix: string): number {
  const named = kvs.filter(({ key }) => splitChild(key.slice(prefix.length)) !== undefined);
  return named.reduce((newest, { modRevision }) => Math.max(newest, modRevision), 0);
}

function childrenOf(
  keys: { readonly children: string; readonly addedBelow: string },
  addedBelow: readonly KeyValue[],
  children: readonly KeyValue[],
): Children {
  const prefixes = { keys: keys.children, dirs: keys.addedBelow };
  const directory = new Directory(prefixes, false, { keys: 0, dirs: 0 });
  directory.load('keys', children);
  directory.load('dirs', addedBelow);
  return directory.children;
}

async function keyStat(connection: Connection, kv: KeyValue, signal?: AbortSignal): Promise<KeyStat> {
  const lease =
    kv.lease === '0'
      ? undefined
      : await connection.retrying((store) => store.leaseTimeToLive(kv.lease, false, connection.callOptions), {
          signal,
        });
  return {
    value: Buffer.from(kv.value).toString('utf8'),
    lease: kv.lease,
    ttl: lease?.grantedTtl,
    // The lease may have ended since the key was read.
    secondsLeft: lease && Math.max(0, lease.ttl),
    created: kv.createRevision,
    modified: kv.modRevision,
    version: kv.version,
  };
}

function mirrorStat(
  kind: MirrorKind,
  marker: string,
  markerKv: KeyValue | undefined,
  shadow: readonly KeyValue[],
  locks: readonly KeyValue[],
  found: Children,
): MirrorStat | undefined {
  if (shadow.length === 0 && locks.length === 0) return undefined;
  const told = markerKv && decodeMarker(markerKv.value, markerKv.modRevision);
  const [oldest] = [...locks].sort((a, b) => a.createRevision - b.createRevision);
  const wanted = shadowOf(found);
  const held = new Set(shadow.map(({ key }) => key.slice(marker.length)).filter((name) => name !== ''));
  return {
    kind,
    marker,
    told: told && { ...told.keys, touched: touchedCount(told), lock: told.lock },
    master: oldest && { lock: oldest.key, lease: oldest.lease, created: oldest.createRevision },
    contenders: locks.length,
    missing: [...wanted].filter((name) => !held.has(name)).length,
    surplus: [...held].filter((name) => !wanted.has(name)).length,
  };
}

/** What the plain shadow of a directory holds: `CHILD` for a key, `CHILD/` for a directory. */
function shadowOf(found: Children): Set<string> {
  const names = new Set<string>();
  for (const [name, child] of found.entries()) {
    if (child.key) names.add(name);
    if (child.below || child.added) names.add(`${name}/`);
  }
  return names;
}
