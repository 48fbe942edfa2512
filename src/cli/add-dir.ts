import { parsePath } from '../core/paths.ts';
import type { Context } from './context.ts';
import type { GlobalFlags } from './options.ts';
import { writeJson } from './output.ts';
import { once } from './session.ts';

export async function addDir(context: Context, flags: GlobalFlags, path: string): Promise<void> {
  parsePath(path);
  return once(context, flags, async (client, signal) => {
    await client.addDir(path, { signal });
    if (flags.json) writeJson(context.stdout, { path, added: true });
  });
}
