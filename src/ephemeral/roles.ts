import { directoryKeys, type MirrorKeys, type MirrorKind, mirrorKeys, SESSIONS_PREFIX } from './keys.ts';

/**
 * Pure: what a user of etcd must be allowed so that a client works, and nothing beyond. Etcd judges a call by the ranges that it
 * names: a transaction by those of its compares and of both its branches, a watch by the whole range watched, the revocation of a
 * lease by the right to write every key on it, and in later releases its renewal by the same and a look at its keys by the right to
 * read them. Making a lease needs no right at all.
 */

export type Access = 'read' | 'write' | 'readwrite';

/** One key, every key under a prefix, or the keys from `key` up to, not including, `end`. */
export type GrantTarget =
  | { readonly key: string }
  | { readonly prefix: string }
  | { readonly key: string; readonly end: string };

export interface Grant {
  readonly access: Access;
  readonly target: GrantTarget;
  /** What cannot be done without it. */
  readonly purpose: string;
}

/** What the users of a role may do, or need not. */
export interface Roles {
  /** Registers, adds directories, lists, and may be master of mirrors. */
  readonly registrar: readonly Grant[];
  /** Reads and watches as a client with `candidate: false` does. */
  readonly watcher: readonly Grant[];
}

export interface RolesOptions {
  readonly namespace: string;
  /** Parsed paths; the root, as an empty text, or none at all stand for the whole namespace. */
  readonly directories: readonly string[];
  /** Where the elastic cluster publishes its endpoints, for clients that follow it. */
  readonly follow?: string | undefined;
}

const KINDS: readonly MirrorKind[] = ['names', 'values'];

export function roles({ namespace, directories, follow }: RolesOptions): Roles {
  const apart = outermost(directories);
  const isWhole = apart.length === 0 || apart.includes('');
  const followed = follow === undefined ? [] : reading(follow, '/endpoints', 'follow the elastic cluster');
  const registrar = isWhole
    ? registrarOfAll(namespace)
    : [...apart.flatMap((path) => registrarOf(namespace, path)), sessions(namespace, 'readwrite')];
  const watcher = isWhole
    ? [grant('read', { prefix: `${namespace}/` }, 'list and watch')]
    : apart.flatMap((path) => [...reading(namespace, path, 'list and watch'), ...mirrorReading(namespace, path)]);
  return { registrar: [...registrar, ...followed], watcher: [...watcher, ...followed] };
}

function grant(access: Access, target: GrantTarget, purpose: string): Grant {
  return { access, target, purpose };
}

/** Without those that lie in another one, whose rights they share. */
function outermost(paths: readonly string[]): string[] {
  const distinct = [...new Set(paths)];
  return distinct.filter((path) => !distinct.some((other) => other !== path && path.startsWith(`${other}/`)));
}

function registrarOf(namespace: string, path: string): Grant[] {
  const { self, children, added, addedBelow } = directoryKeys(namespace, path);
  const rw = (target: GrantTarget, purpose: string) => grant('readwrite', target, purpose);
  return [
    rw({ prefix: children }, 'register, list'),
    ...(self === undefined ? [] : [grant('read', { key: self }, 'list')]),
    rw({ key: added }, 'add and remove the directory, list'),
    rw({ prefix: addedBelow }, 'add and remove directories below it, list'),
    ...KINDS.flatMap((kind) => {
      const { marker, locks } = mirrorsFrom(namespace, path, kind);
      return [
        rw({ prefix: marker }, `watch ${kind}: the mirror`),
        rw({ prefix: locks }, `watch ${kind}: be its master`),
      ];
    }),
  ];
}

/**
 * A listing of the root reads all that lies in the namespace. Writing is granted by kind of key: what else starts with `_` there, an
 * elastic cluster's records for one, is not to be touched.
 */
function registrarOfAll(namespace: string): Grant[] {
  const { children: root, addedBelow } = directoryKeys(namespace, '');
  const write = (target: GrantTarget, purpose: string) => grant('write', target, purpose);
  return [
    grant('read', { prefix: root }, 'list, watch'),
    // All names but those with the reserved first character: '`' comes after '_', and '0' after '/'.
    write({ key: root, end: `${root}_` }, 'register names up to _'),
    write({ key: `${root}\``, end: `${namespace}0` }, 'register names after _'),
    write({ prefix: addedBelow }, 'add and remove directories'),
    ...KINDS.flatMap((kind) => {
      const { marker, locks } = mirrorsFrom(namespace, '', kind);
      return [
        write({ prefix: marker }, `watch ${kind}: keep mirrors`),
        write({ prefix: locks }, `watch ${kind}: be their master`),
      ];
    }),
    sessions(namespace, 'write'),
  ];
}

function sessions(namespace: string, access: Access): Grant {
  return grant(access, { prefix: namespace + SESSIONS_PREFIX }, 'hold a lease: its fence');
}

function reading(namespace: string, path: string, purpose: string): Grant[] {
  const { self, children, added, addedBelow } = directoryKeys(namespace, path);
  const keys = [self, added].flatMap((key) => (key === undefined ? [] : [{ key }]));
  return [{ prefix: children }, { prefix: addedBelow }, ...keys].map((target) => grant('read', target, purpose));
}

function mirrorReading(namespace: string, path: string): Grant[] {
  return KINDS.flatMap((kind) => {
    const { marker, locks } = mirrorsFrom(namespace, path, kind);
    return [
      grant('read', { prefix: marker }, `watch ${kind}: the mirror`),
      grant('read', { prefix: locks }, `watch ${kind}: see that its master lives`),
    ];
  });
}

/** The mirrors of a directory and of all directories below it: the second slash that ends a directory's name is left out. */
function mirrorsFrom(namespace: string, path: string, kind: MirrorKind): MirrorKeys {
  const { marker, locks } = mirrorKeys(namespace, path, kind);
  return { marker: marker.slice(0, -1), locks: locks.slice(0, -1) };
}
