/** No child outlives the test process, however that ends; and no folder of theirs, unless that is killed. */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
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

/** A new folder that is removed when this process exits. */
export function temporaryFolder(prefix: string): string {
  const folder = mkdtempSync(join(tmpdir(), prefix));
  folders.add(folder);
  return folder;
}
