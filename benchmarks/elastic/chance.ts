/**
 * What is part of a step and says nothing of how well it was made. etcd draws its election timeouts by lot: the first member of a
 * cluster leads after 0.1 to 1.1 s, a lone one that restarts after 1 to 2 s, and a leader's successor after about as long.
 */
import { readdirSync, readFileSync, statSync } from 'node:fs';

/** When any of the members first knew of a leader, after `sinceMs`; by the logs that they wrote themselves. */
export function electedMs(logs: readonly string[], sinceMs: number): number | undefined {
  const times = logs.flatMap((log) => timesIn(log, (message) => / elected leader /.test(message)));
  const after = times.filter((ms) => ms >= sinceMs);
  return after.length === 0 ? undefined : Math.min(...after);
}

/** How long a lone member waited for its own election, from the first line of its log on. */
export function loneElectionMs(log: string): number {
  const begunMs = timesIn(log, () => true)[0] ?? 0;
  return (electedMs([log], begunMs) ?? begunMs) - begunMs;
}

function timesIn(log: string, fits: (message: string) => boolean): readonly number[] {
  return readFileSync(log, 'utf8')
    .split('\n')
    .flatMap((line) => {
      const { ts, msg } = parse(line);
      return ts !== undefined && msg !== undefined && fits(msg) ? [Date.parse(ts)] : [];
    });
}

function parse(line: string): { readonly ts?: string; readonly msg?: string } {
  try {
    return JSON.parse(line) as { ts?: string; msg?: string };
  } catch {
    return {};
  }
}

/** The time that went into backups begun after `sinceMs`: a backup's name tells when it was begun, its last change when it was done. */
export function backupsMs(folders: readonly string[], sinceMs: number): number {
  const took = folders.flatMap(snapshotsIn).flatMap(({ path, begunMs }) => {
    return begunMs >= sinceMs ? [Math.max(0, statSync(path).ctimeMs - begunMs)] : [];
  });
  return took.reduce((sum, ms) => sum + ms, 0);
}

function snapshotsIn(folder: string): readonly { readonly path: string; readonly begunMs: number }[] {
  let names: readonly string[];
  try {
    names = readdirSync(folder);
  } catch {
    return [];
  }
  return names.flatMap((name) => {
    const time = /^snapshot-(.+)T(\d\d)-(\d\d)-(\d\d)-(\d{3})Z\.db$/.exec(name);
    if (!time) return [];
    const [, day, hour, minute, second, ms] = time;
    return [{ path: `${folder}/${name}`, begunMs: Date.parse(`${day}T${hour}:${minute}:${second}.${ms}Z`) }];
  });
}
