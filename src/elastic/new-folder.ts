import { mkdirSync, rmdirSync } from 'node:fs';
import { dirname, resolve } from 'node:path';

/** Makes a folder where there is none. Returns what takes away again, as far as it is empty, what was made. */
export function makeFolder(path: string): () => void {
  const whole = resolve(path);
  const first = mkdirSync(whole, { recursive: true, mode: 0o700 });
  return () => {
    if (first === undefined) return;
    try {
      for (let one = whole; one.length >= resolve(first).length; one = dirname(one)) rmdirSync(one);
    } catch {
      // Something lies there, and keeps all above it.
    }
  };
}
