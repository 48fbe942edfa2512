import type { Context } from './context.ts';
import type { GlobalFlags } from './options.ts';
import { escapeText, writeJson } from './output.ts';
import { once } from './session.ts';

export interface KeyStat {
  readonly value: string;
  /** Decimal; `'0'` when the key hangs on no lease. */
  readonly lease: string;
  /** Seconds the lease was granted for; undefined without a lease. */
  readonly ttl?: number | undefined;
  /** Seconds until it ends, unless it is renewed; undefined without a lease. */
  readonly secondsLeft?: number | undefined;
  readonly created: number;
  readonly modified: number;
  /** Writes since it was created, that one included. */
  readonly version: number;
}

export interface MirrorStat {
  /** The key of the marker. */
  readonly marker: string;
  /** The directory's revision that the marker tells. */
  readonly mirrored: number;
  /** The revision that it tells the changes since. */
  readonly from: number;
  /** Children that its last batch touched. */
  readonly touched: number;
  /** The master's lock; undefined when it is gone, so that nobody keeps the mirror. */
  readonly master?: { readonly lock: string; readonly lease: string; readonly created: number } | undefined;
}

export interface DirectoryStat {
  /** Made by add-dir, so that it stays when it is empty. */
  readonly added: boolean;
  readonly children: number;
  /** Of the last change of a key below that is still there; 0 when there is none. */
  readonly changed: number;
  readonly mirror?: MirrorStat | undefined;
  readonly valuesMirror?: MirrorStat | undefined;
}

/** What is stored about a path, all of it read at one revision. A path may be a key and a directory at once. */
export interface PathStat {
  readonly path: string;
  readonly revision: number;
  readonly key?: KeyStat | undefined;
  readonly directory?: DirectoryStat | undefined;
}

function keyLines(key: KeyStat): string[] {
  return [
    `value\t${escapeText(key.value)}`,
    `lease\t${key.lease === '0' ? 'none' : key.lease}`,
    ...(key.ttl === undefined ? [] : [`ttl\t${key.ttl} s, ${key.secondsLeft} s left`]),
    `created\t${key.created}`,
    `modified\t${key.modified}`,
    `version\t${key.version}`,
  ];
}

function mirrorLines(name: string, mirror: MirrorStat, directory: DirectoryStat): string[] {
  const behind = mirror.mirrored < directory.changed ? `, behind ${directory.changed}` : '';
  return [
    `${name}\t${escapeText(mirror.marker)}`,
    `  mirrored\t${mirror.mirrored}${behind}`,
    `  batch\tfrom ${mirror.from}, ${mirror.touched} touched`,
    `  master\t${mirror.master === undefined ? 'none' : `${escapeText(mirror.master.lock)} on lease ${mirror.master.lease}`}`,
  ];
}

function directoryLines(directory: DirectoryStat): string[] {
  return [
    `directory\t${directory.added ? 'added' : 'not added, there by what lies below'}`,
    `children\t${directory.children}`,
    `changed\t${directory.changed}`,
    ...(directory.mirror === undefined ? ['mirror\tnone'] : mirrorLines('mirror', directory.mirror, directory)),
    ...(directory.valuesMirror === undefined ? [] : mirrorLines('values mirror', directory.valuesMirror, directory)),
  ];
}

function lines(stat: PathStat): string[] {
  return [
    `path\t${escapeText(stat.path)}`,
    `revision\t${stat.revision}`,
    ...(stat.key === undefined ? [] : keyLines(stat.key)),
    ...(stat.directory === undefined ? [] : directoryLines(stat.directory)),
  ];
}

export function stat(context: Context, flags: GlobalFlags, path: string): Promise<void> {
  return once(context, flags, async (client, signal) => {
    const found = await context.inspect(client, path, { signal });
    if (flags.json) writeJson(context.stdout, found);
    else
      context.stdout.write(
        lines(found)
          .map((line) => `${line}\n`)
          .join(''),
      );
  });
}
