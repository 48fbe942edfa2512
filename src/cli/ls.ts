import { parsePath } from '../core/paths.ts';
import type { Ephemeral, Listing, ListingChange } from '../ephemeral/api.ts';
import { changes } from '../ephemeral/changes.ts';
import type { Context } from './context.ts';
import { UsageError } from './exit.ts';
import type { GlobalFlags } from './options.ts';
import { childText, escapeText, writeJson } from './output.ts';
import { interruptible, once, withClient } from './session.ts';

export interface LsFlags extends GlobalFlags {
  watch?: boolean;
  values?: boolean;
  direct?: boolean;
  wait?: boolean;
}

function writeListing(context: Context, flags: LsFlags, listing: Listing): void {
  if (flags.json) {
    writeJson(context.stdout, listing);
    return;
  }
  const directories = new Set(listing.directories);
  context.stdout.write(listing.children.map((name) => `${childText(listing, name, directories)}\n`).join(''));
}

function writeChange(context: Context, { added, removed, changed, listing }: ListingChange): void {
  const directories = new Set(listing.directories);
  const lines = [
    ...removed.map((name) => `- ${escapeText(name)}`),
    ...added.map((name) => `+ ${childText(listing, name, directories)}`),
    ...changed.map((name) => `~ ${childText(listing, name, directories)}`),
  ];
  context.stdout.write(lines.map((line) => `${line}\n`).join(''));
}

function writeStatus(context: Context, { path, status }: Listing): void {
  const meaning = status === 'live' ? 'live again' : 'stale: etcd does not answer, this is the last known list';
  context.stderr.write(`ephemeral: ${escapeText(path)} is ${meaning}\n`);
}

function watch(context: Context, flags: LsFlags, client: Ephemeral, path: string, signal: AbortSignal): Promise<void> {
  let previous: Listing | undefined;
  return client
    .list(path, {
      watch: true,
      values: flags.values,
      via: flags.direct ? 'direct' : 'mirror',
      missing: flags.wait ? 'wait' : 'error',
      signal,
    })
    .pipe(changes())
    .forEach((change) => {
      const { listing } = change;
      if (previous === undefined && !flags.json && listing.children.length === 0)
        context.stderr.write(`ephemeral: ${escapeText(listing.path)} is empty so far\n`);
      if (flags.json || previous === undefined) writeListing(context, flags, listing);
      else writeChange(context, change);
      if (listing.status !== (previous?.status ?? 'live')) writeStatus(context, listing);
      previous = listing;
    });
}

export async function ls(context: Context, flags: LsFlags, path: string): Promise<void> {
  parsePath(path, 'root allowed');
  if (!flags.watch) {
    if (flags.wait) throw new UsageError('--wait needs --watch: a list asked for once is what is there now');
    if (flags.direct) throw new UsageError('--direct needs --watch: a list asked for once is read directly anyway');
    return once(context, flags, async (client, signal) => {
      writeListing(context, flags, await client.list(path, { values: flags.values, signal }));
    });
  }
  return interruptible(context.signals, (interrupted) =>
    withClient(context, flags, { candidate: false }, interrupted, async (client) => {
      const ended = AbortSignal.any([interrupted, context.stdout.closed]);
      try {
        await watch(context, flags, client, path, ended);
      } catch (error) {
        // The reader went away, which is how `| head` ends: quietly.
        if (!context.stdout.closed.aborted) throw error;
      }
    }),
  );
}
