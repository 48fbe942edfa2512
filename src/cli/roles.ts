import { InvalidArgumentError } from 'commander';
import { parsePath } from '../core/paths.ts';
import { checkNamespace } from '../ephemeral/options.ts';
import { type Grant, type GrantTarget, roles as rolesOf } from '../ephemeral/roles.ts';
import type { Context } from './context.ts';
import { UsageError } from './exit.ts';
import type { GlobalFlags } from './options.ts';
import { isPlain, writeJson } from './output.ts';

export interface RolesFlags extends GlobalFlags {
  dir?: string[];
  follow?: string;
  name: string;
}

export function parseRoleName(text: string): string {
  if (text === '' || text.startsWith('-'))
    throw new InvalidArgumentError('It is text that does not start with a dash.');
  return text;
}

const PLAIN = /^[\w@%+=:,./-]+$/;

/** As one word of a POSIX shell, whatever it holds. */
function quoted(word: string): string {
  return PLAIN.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}

function keyWords(target: GrantTarget): string[] {
  if ('prefix' in target) return [target.prefix];
  return 'end' in target ? [target.key, target.end] : [target.key];
}

function grantLine(role: string, { access, target }: Grant): string {
  const words = [role, access, ...keyWords(target)];
  const flags = 'prefix' in target ? ['--prefix'] : [];
  // A key that starts with a dash would be taken for a flag.
  const order = words.some((word) => word.startsWith('-')) ? [...flags, '--', ...words] : [...words, ...flags];
  return ['etcdctl', 'role', 'grant-permission', ...order].map(quoted).join(' ');
}

/** Comments have lines of their own: not every interactive shell takes one behind a command. */
function roleText(role: string, meaning: string, grants: readonly Grant[]): string {
  const lines = grants.flatMap((grant, index) => {
    const isToldAlready = grants[index - 1]?.purpose === grant.purpose;
    return [...(isToldAlready ? [] : [`# ${grant.purpose}`]), grantLine(role, grant)];
  });
  return [`# ${meaning}`, `etcdctl role add ${quoted(role)}`, ...lines, ''].join('\n');
}

function roleJson(name: string, grants: readonly Grant[]): object {
  return { name, grants: grants.map(({ access, target, purpose }) => ({ access, ...target, purpose })) };
}

/** Prints what etcd must grant: nothing is connected to, and nothing is changed. */
export function roles(context: Context, flags: RolesFlags): void {
  const { namespace = '', follow, dir = [], name } = flags;
  checkNamespace(namespace);
  const directories = dir.map((path) => parsePath(path, 'root allowed'));
  const { registrar, watcher } = rolesOf({ namespace, directories, follow });
  const names = { registrar: `${name}-registrar`, watcher: `${name}-watcher` };
  if (flags.json) {
    writeJson(context.stdout, {
      registrar: roleJson(names.registrar, registrar),
      watcher: roleJson(names.watcher, watcher),
    });
    return;
  }
  if (![namespace, follow ?? '', name, ...directories].every(isPlain)) {
    throw new UsageError('a name holds a character that cannot be seen: such a line is not to be pasted, use --json');
  }
  const text = [
    roleText(names.registrar, 'Registers, adds directories, lists, and may be master of their mirrors.', registrar),
    roleText(
      names.watcher,
      'Reads and watches, and writes nothing: for clients with candidate: false, and for ls.',
      watcher,
    ),
    `# Then: etcdctl user grant-role USER ${quoted(names.registrar)}`,
    '',
  ].join('\n');
  context.stdout.write(text);
}
