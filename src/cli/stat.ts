import { parsePath } from '../core/paths.ts';
import type { DirectoryStat, KeyStat, MirrorStat, PathStat } from '../ephemeral/inspect.ts';
import type { Context } from './context.ts';
import type { GlobalFlags } from './options.ts';
import { escapeText, leaseHex, writeJson } from './output.ts';
import { once } from './session.ts';

/** The same with each lease in hexadecimal beside it. */
function withHex(stat: PathStat): object {
  const mirrors = stat.directory?.mirrors.map((mirror) => ({
    ...mirror,
    master: mirror.master && { ...mirror.master, leaseHex: leaseHex(mirror.master.lease) },
  }));
  return {
    ...stat,
    key: stat.key && { ...stat.key, leaseHex: leaseHex(stat.key.lease) },
    directory: stat.directory && { ...stat.directory, mirrors },
  };
}

function keyLines(key: KeyStat): string[] {
  return [
    `value\t${escapeText(key.value)}`,
    `lease\t${key.lease === '0' ? 'none' : leaseHex(key.lease)}`,
    ...(key.ttl === undefined ? [] : [`ttl\t${key.ttl} s, ${key.secondsLeft} s left`]),
    `created\t${key.created}`,
    `modified\t${key.modified}`,
    `version\t${key.version}`,
  ];
}

function mirrorLines({ kind, marker, told, master, contenders, missing, surplus }: MirrorStat): string[] {
  return [
    `mirror of ${kind}\t${escapeText(marker)}`,
    told === undefined
      ? '  marker\tnone: watchers read the directory itself'
      : `  mirrored\t${told.to}, from ${told.from}, ${told.touched} touched, by ${escapeText(told.lock)}`,
    `  master\t${master === undefined ? 'none' : `${escapeText(master.lock)} on lease ${leaseHex(master.lease)}`}`,
    `  contenders\t${contenders}`,
    `  shadow\t${missing === 0 && surplus === 0 ? 'complete' : `${missing} missing, ${surplus} too many`}`,
  ];
}

function directoryLines({ added, children, modified, mirrors }: DirectoryStat): string[] {
  return [
    `directory\t${added ? 'added' : 'not added: it is there by what lies below'}`,
    `children\t${children}`,
    `last write\t${modified === 0 ? 'none' : modified}`,
    ...(mirrors.length === 0 ? ['mirror\tnone'] : mirrors.flatMap(mirrorLines)),
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

export async function stat(context: Context, flags: GlobalFlags, path: string): Promise<void> {
  parsePath(path, 'root allowed');
  return once(context, flags, async (client, signal) => {
    const found = await context.inspect(client, path, { signal });
    if (flags.json) writeJson(context.stdout, withHex(found));
    else
      context.stdout.write(
        lines(found)
          .map((line) => `${line}\n`)
          .join(''),
      );
  });
}
