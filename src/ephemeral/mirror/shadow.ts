import type { KeyValue } from '../../core/store.ts';
import type { Children } from '../children.ts';

/** Pure: compares a plain shadow, as read, with the directory it should show. */
export function compareShadow(
  kvs: readonly KeyValue[],
  prefix: string,
  children: Children,
  withValues: boolean,
): { held: Set<string>; wrong: Set<string> } {
  const held = new Set<string>();
  const wrong = new Set<string>();
  for (const kv of kvs) {
    const suffix = kv.key.slice(prefix.length);
    if (suffix === '') continue;
    held.add(suffix);
    const isDirectory = suffix.endsWith('/');
    const name = isDirectory ? suffix.slice(0, -1) : suffix;
    const child = children.get(name);
    const stands = isDirectory ? child?.below || child?.added : child?.key;
    if (!stands || (withValues && !isDirectory && Buffer.compare(kv.value, child?.value ?? kv.value) !== 0))
      wrong.add(name);
  }
  for (const [name, child] of children.entries()) {
    if (child.key && !held.has(name)) wrong.add(name);
    if ((child.below || child.added) && !held.has(`${name}/`)) wrong.add(name);
  }
  return { held, wrong };
}
