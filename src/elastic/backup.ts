import { readdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { ClusterAdmin } from '../etcd/cluster-admin.ts';
import { makeFolder } from './new-folder.ts';

/** Enough to go back beyond the changes of one resize. */
const KEPT = 8;
const NAME = /^snapshot-.*\.db$/;

/** A snapshot under a name that sorts by time; of several, the newest are kept. Returns its path. */
export async function takeBackup(admin: ClusterAdmin, url: string, folder: string, now: Date): Promise<string> {
  makeFolder(folder);
  const path = join(folder, `snapshot-${now.toISOString().replace(/[:.]/g, '-')}.db`);
  const draft = `${path}.part`;
  try {
    await admin.snapshot(url, draft);
    renameSync(draft, path);
  } finally {
    rmSync(draft, { force: true });
  }
  for (const name of listBackups(folder).slice(0, -KEPT)) rmSync(join(folder, name), { force: true });
  return path;
}

/** Oldest first. */
export function listBackups(folder: string): readonly string[] {
  return readdirSync(folder)
    .filter((name) => NAME.test(name))
    .sort();
}
