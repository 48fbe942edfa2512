import type { Listing } from '../ephemeral/api.ts';

export interface Difference {
  added: string[];
  removed: string[];
  changed: string[];
}

/** What a reader of names, kinds and values sees change between two listings. */
export function difference(before: Listing, after: Listing): Difference {
  const names = { before: new Set(before.children), after: new Set(after.children) };
  const directories = { before: new Set(before.directories), after: new Set(after.directories) };
  const isChanged = (name: string) => {
    if (directories.before.has(name) !== directories.after.has(name)) return true;
    const [old, now] = [before.entries?.get(name), after.entries?.get(name)];
    return old?.value !== now?.value || old?.created !== now?.created;
  };
  return {
    added: after.children.filter((name) => !names.before.has(name)),
    removed: before.children.filter((name) => !names.after.has(name)),
    changed: after.children.filter((name) => names.before.has(name) && isChanged(name)),
  };
}
