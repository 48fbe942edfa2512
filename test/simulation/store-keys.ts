/** What a key of the store is, by where it lies. */
export type StoreKey =
  | { readonly kind: 'registration' }
  | { readonly kind: 'directory'; readonly path: string }
  | {
      readonly kind: 'marker' | 'shadow' | 'lock';
      readonly mirror: string;
      readonly path: string;
      readonly values: boolean;
    }
  | { readonly kind: 'fence' }
  | { readonly kind: 'foreign' };

export function storeKey(namespace: string, key: string): StoreKey {
  const rest = key.slice(namespace.length);
  if (!rest.startsWith('/_')) return { kind: 'registration' };
  if (rest.startsWith('/_dirs')) return { kind: 'directory', path: rest.slice('/_dirs'.length) };
  if (rest.startsWith('/_sessions/')) return { kind: 'fence' };
  const lock = /^\/_watcherLock\/(names|values)(.*?)\/\/[^/]*$/.exec(rest);
  if (lock) return mirrorKey('lock', lock[1] === 'values', lock[2] as string);
  const mirror = /^\/_watcher(Dir|Values)(.*?)\/\/(.*)$/.exec(rest);
  if (mirror) return mirrorKey(mirror[3] === '' ? 'marker' : 'shadow', mirror[1] === 'Values', mirror[2] as string);
  return { kind: 'foreign' };
}

function mirrorKey(kind: 'marker' | 'shadow' | 'lock', values: boolean, path: string): StoreKey {
  return { kind, mirror: `${values ? 'values' : 'names'}${path}`, path, values };
}
