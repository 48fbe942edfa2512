/** Where everything lies in the store, after the namespace. A path here has been parsed: absolute, or empty for the root. */

/** A mirror of names, or one of names and values: the same code, each with its own marker, shadow and master. */
export type MirrorKind = 'names' | 'values';

const SHADOW_ROOT: Record<MirrorKind, string> = { names: '/_watcherDir', values: '/_watcherValues' };

export const SESSIONS_PREFIX = '/_sessions/';

export function dirKey(namespace: string, path: string): string {
  return `${namespace}/_dirs${path}`;
}

/** All that concerns one directory. */
export interface DirectoryKeys {
  /** The key of the directory's own name; undefined for the root, which has none. */
  readonly self: string | undefined;
  /** Registrations below the directory, at any depth. */
  readonly children: string;
  /** Set when the directory itself was added. */
  readonly added: string;
  /** Added directories below it, at any depth. */
  readonly addedBelow: string;
}

export function directoryKeys(namespace: string, path: string): DirectoryKeys {
  const added = dirKey(namespace, path);
  return {
    self: path === '' ? undefined : namespace + path,
    children: `${namespace}${path}/`,
    added,
    addedBelow: `${added}/`,
  };
}

export interface MirrorKeys {
  /** The marker; what follows it in a key is a child of the plain shadow. Two slashes: a deeper directory's marker has a name there. */
  readonly marker: string;
  /** One key a contender. */
  readonly locks: string;
}

export function mirrorKeys(namespace: string, path: string, kind: MirrorKind): MirrorKeys {
  return {
    marker: `${namespace}${SHADOW_ROOT[kind]}${path}//`,
    locks: `${namespace}/_watcherLock/${kind}${path}//`,
  };
}
