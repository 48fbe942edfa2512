import { parsePath } from '../core/paths.ts';
import type { Context } from './context.ts';
import type { GlobalFlags } from './options.ts';
import { escapeLines, writeJson } from './output.ts';
import { once } from './session.ts';

export async function get(context: Context, flags: GlobalFlags, path: string): Promise<void> {
  parsePath(path);
  return once(context, flags, async (client, signal) => {
    const value = await client.get(path, { signal });
    if (flags.json) writeJson(context.stdout, { path, value });
    // A program that reads it gets the value as it is; a terminal would obey what the value holds.
    else context.stdout.write(`${context.stdout.isTTY ? escapeLines(value) : value}\n`);
  });
}
