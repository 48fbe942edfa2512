/** No child outlives the test process, however that ends; and no folder of theirs, unless that is killed. */
import { type ChildProcess, spawn } from 'node:child_process';
import { accessSync, constants, mkdtempSync, rmSync, statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/**
 * Reads `+pid` and `-pid` lines; once its input ends, which is when this process is gone, kills what is left and all that was started
 * by it, such as the etcd of an elastic host. Command lines are compared, since a pid may have been given to another program meanwhile.
 */
const GUARD = `
end() {
  kill -STOP "$1"
  ps -A -o pid= -o ppid= | while read -r child parent; do [ "$parent" = "$1" ] && end "$child"; done
  kill -KILL "$1"
}
pids=
while read -r line; do
  pid=\${line#?}
  case $line in
    +*) eval "seen_$pid=\\$(ps -o args= -p $pid)"; pids="$pids $pid" ;;
    -*) eval "seen_$pid=" ;;
  esac
done
for pid in $pids; do
  eval "seen=\\$seen_$pid"
  [ -n "$seen" ] && [ "$(ps -o args= -p "$pid")" = "$seen" ] && end "$pid"
done`;

const alive = new Set<ChildProcess>();
const folders = new Set<string>();
let guard: ChildProcess | undefined;

process.on('exit', () => {
  for (const child of alive) child.kill('SIGKILL');
  for (const folder of folders) {
    try {
      rmSync(folder, { recursive: true, force: true });
    } catch {
      // A child that is not quite dead yet may still write there; the exit code is not to change for that.
    }
  }
});

function tellGuard(line: string): void {
  if (guard === undefined) {
    guard = spawn('sh', ['-c', GUARD], { stdio: ['pipe', 'ignore', 'ignore'], detached: true });
    guard.unref();
    const input = guard.stdin;
    if (input !== null && 'unref' in input && typeof input.unref === 'function') input.unref();
    guard.stdin?.on('error', () => {});
  }
  guard.stdin?.write(`${line}\n`);
}

/** Kills `child` when this process exits or dies. */
export function bindToThisProcess(child: ChildProcess): void {
  if (child.pid === undefined) return;
  alive.add(child);
  tellGuard(`+${child.pid}`);
  child.once('exit', () => {
    alive.delete(child);
    tellGuard(`-${child.pid}`);
  });
}

/** As `bindToThisProcess`, for a process that lost its parent: it is killed when this one dies. */
export function bindOrphan(pid: number): void {
  tellGuard(`+${pid}`);
}

/** A folder in memory, on Linux. */
const MEMORY = '/dev/shm';
/** Each etcd lays out 64 MiB for its log at once, and containers have often no more memory folder than that. */
const ENOUGH_BYTES = 2 * 1024 ** 3;

/**
 * Where etcd's data goes. In memory if there is room: a disk that others keep busy would stall etcd for as long as a lease lasts,
 * and what is lost with the machine's power is no matter here. Whoever names a folder for what is temporary gets that one.
 */
function temporaryBase(): string {
  if (process.env.TMPDIR) return tmpdir();
  try {
    const { bavail, bsize } = statfsSync(MEMORY);
    accessSync(MEMORY, constants.W_OK);
    if (bavail * bsize > ENOUGH_BYTES) return MEMORY;
  } catch {
    // No such folder here.
  }
  return tmpdir();
}

/** A new folder that is removed when this process exits. */
export function temporaryFolder(prefix: string): string {
  const folder = mkdtempSync(join(temporaryBase(), prefix));
  folders.add(folder);
  return folder;
}
