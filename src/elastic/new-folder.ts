import { existsSync, mkdirSync, rmdirSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { InvalidOptionError } from '../core/errors.ts';
import { messageOf } from '../core/log.ts';

/**
 * Makes a folder where there is none. Returns what takes away again, as far as it is empty, what was made.
 * @throws InvalidOptionError
 */
export function makeFolder(path: string): () => void {
  const made: string[] = [];
  const unmake = () => {
    try {
      for (const one of made) rmdirSync(one);
    } catch {
      // Something lies there, and keeps all above it.
    }
  };
  try {
    // One by one: where nothing can be made (below /proc, say), Node 20's own recursion never ends.
    for (const one of missing(resolve(path))) {
      mkdirSync(one, { mode: 0o700 });
      made.unshift(one);
    }
    if (!statSync(path).isDirectory()) throw new Error('a file has this name');
  } catch (cause) {
    unmake();
    throw new InvalidOptionError(`the folder ${path} cannot be made (${messageOf(cause)}): name another one`, {
      cause,
    });
  }
  return unmake;
}

/** What is not there of a path, from the top. */
function missing(whole: string): readonly string[] {
  const folders: string[] = [];
  for (let one = whole; !existsSync(one); one = dirname(one)) folders.unshift(one);
  return folders;
}
