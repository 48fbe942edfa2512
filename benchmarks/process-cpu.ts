/** CPU time of processes that are not ours to ask. Linux only; elsewhere undefined. */
import { readFileSync } from 'node:fs';

/** What the kernel counts in here is fixed for user space, whatever it ticks at. */
const TICKS_PER_SECOND = 100;

function ticksOf(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  // The name in parentheses may hold anything.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return Number(fields[11]) + Number(fields[12]);
}

/** Milliseconds of CPU that these processes have used so far. */
export function cpuMsOf(pids: readonly number[]): number | undefined {
  if (pids.length === 0) return undefined;
  try {
    return (pids.reduce((sum, pid) => sum + ticksOf(pid), 0) * 1_000) / TICKS_PER_SECOND;
  } catch {
    return undefined;
  }
}
