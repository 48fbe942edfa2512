import type { Connection, InEpoch, RetryOptions } from '../core/connection.ts';
import { NotADirectoryError, PathNotFoundError } from '../core/errors.ts';
import { readSnapshot } from '../core/snapshot.ts';
import type { KeyValue } from '../core/store.ts';
import { Directory } from './directory.ts';
import type { DirectoryKeys, MirrorKeys } from './keys.ts';

/** What decides whether a directory can be listed. */
export interface Presence {
  readonly isEmpty: boolean;
  readonly isAdded: boolean;
  readonly isKey: boolean;
}

export interface DirectoryRead extends Presence {
  readonly directory: Directory;
  readonly revision: number;
  /** The mirror's marker, if one was asked for and stands. */
  readonly marker: KeyValue | undefined;
}

/** A directory as it is, and its mirror's marker beside it, at one revision. */
export async function readDirectory(
  connection: Connection,
  keys: DirectoryKeys,
  mirror: MirrorKeys | undefined,
  withValues: boolean,
  options: RetryOptions,
): Promise<InEpoch<DirectoryRead>> {
  const single = [keys.added, keys.self ?? keys.added, ...(mirror ? [mirror.marker] : [])];
  const { targets, revision, epoch } = await readSnapshot(
    connection,
    [
      { prefix: keys.children },
      { prefix: keys.addedBelow },
      ...single.map((key) => ({ key, withValue: key === mirror?.marker })),
    ],
    { ...options, keysOnly: !withValues },
  );
  const [children = [], dirs = [], added = [], self = [], marker = []] = targets;
  const directory = new Directory({ keys: keys.children, dirs: keys.addedBelow }, withValues, {
    keys: revision,
    dirs: revision,
  });
  directory.load('keys', children);
  directory.load('dirs', dirs);
  return {
    directory,
    revision,
    epoch,
    isEmpty: directory.children.size === 0,
    isAdded: added.length > 0,
    isKey: keys.self !== undefined && self.length > 0,
    marker: marker[0],
  };
}

/** @throws PathNotFoundError, NotADirectoryError when there is no such directory; the root is always there */
export function assertDirectory(path: string, { isEmpty, isAdded, isKey }: Presence): void {
  if (isAdded || !isEmpty || path === '') return;
  if (isKey) throw new NotADirectoryError(`${path} is a key with nothing below it: read it with get`);
  throw new PathNotFoundError(
    `there is no directory ${path}: add it with addDir, add a key below it, or watch it with missing: 'wait'`,
  );
}
