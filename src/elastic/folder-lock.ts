import { linkSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { FolderInUseError } from './errors.ts';

/** Who holds a lock: a pid alone may be another process's by now, so its start is told as well. */
interface Holder {
  readonly pid: number;
  readonly started: string;
}

/**
 * A lock of our own on a data folder. etcd has one as well, and waits on it in silence. The file is made by a hard link, which either
 * makes it or fails; a dead process's lock is taken over. Returns the function that gives it up.
 * @throws FolderInUseError
 */
export function lockFolder(path: string): () => void {
  const own: Holder = { pid: process.pid, started: startOf(process.pid) };
  const draft = `${path}.${process.pid}`;
  writeFileSync(draft, JSON.stringify(own));
  try {
    for (let attempt = 0; attempt < 3; attempt++) {
      if (tryLink(draft, path)) return () => rmSync(path, { force: true });
      const holder = readHolder(path);
      if (holder && isAlive(holder)) {
        throw new FolderInUseError(`${path} is held by process ${holder.pid}: stop it, or use another data folder`);
      }
      discard(path, draft);
    }
  } finally {
    rmSync(draft, { force: true });
  }
  throw new FolderInUseError(`${path} could not be taken: other processes take it at the same time`);
}

/** When a process began, in the kernel's ticks since boot; empty where that cannot be told. */
export function startOf(pid: number): string {
  return statOf(pid)[19] ?? '';
}

/** A zombie is dead: it takes signals until its parent has asked for its exit code, which the init of a container may never do. */
export function isAlive({ pid, started }: Holder): boolean {
  try {
    process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
  const [state, ...rest] = statOf(pid);
  return state !== 'Z' && state !== 'X' && (rest[18] ?? '') === started;
}

/** What the kernel tells of a process after its name, the state first; empty where it tells nothing. */
export function statOf(pid: number): readonly string[] {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  } catch {
    return [];
  }
}

function tryLink(from: string, to: string): boolean {
  try {
    linkSync(from, to);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    return false;
  }
}

function readHolder(path: string): Holder | undefined {
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as Holder;
  } catch {
    return undefined;
  }
}

/** By a rename, so that of two who find the same dead lock one discards it. */
function discard(path: string, draft: string): void {
  const grave = `${draft}.dead`;
  try {
    renameSync(path, grave);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
  }
  rmSync(grave, { force: true });
}
