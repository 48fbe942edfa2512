import type { Context } from './context.ts';
import type { GlobalFlags } from './options.ts';
import { writeJson } from './output.ts';
import { once } from './session.ts';

export function addDir(context: Context, flags: GlobalFlags, path: string): Promise<void> {
  return once(context, flags, async (client, signal) => {
    await client.addDir(path, { signal });
    if (flags.json) writeJson(context.stdout, { path, added: true });
  });
}
