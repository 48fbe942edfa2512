import { InvalidPathError } from './errors.ts';

/**
 * Paths: `/` between names, no name empty, `.`, `..`, starting with `_` (reserved for our own keys), with a control character, or
 * very long.
 * U+FFFD is refused too: it is what a stored key that is not UTF-8 decodes to, so a name holding it could not be told from one.
 */

const CONTROL_OR_REPLACEMENT = /[\u0000-\u001f\u007f-\u009f\ufffd]/;
/** A lone half of a surrogate pair has no UTF-8 form: two such names would become one key. */
const LONE_SURROGATE = /[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/;

/** A write names its key some four times, and etcd takes 1.5 MiB: no path that is accepted fails for its length. */
const MAX_LENGTH = 65_536;

/** Why a name cannot be one, or undefined when it can. */
function nameFault(name: string): string | undefined {
  if (name === '') return 'has an empty segment';
  if (name === '.' || name === '..') return `has the segment "${name}"`;
  if (name.startsWith('_')) return 'has a segment that starts with "_", which is reserved';
  if (CONTROL_OR_REPLACEMENT.test(name)) return 'has a control or replacement character';
  if (LONE_SURROGATE.test(name)) return 'is not well-formed Unicode';
  if (name.length > MAX_LENGTH) return `is longer than ${MAX_LENGTH} characters`;
  return undefined;
}

export function isValidName(name: string): boolean {
  return nameFault(name) === undefined;
}

/**
 * The path without a trailing slash; the root becomes the empty text, so that a key is always namespace + path.
 * @throws InvalidPathError
 */
export function parsePath(path: unknown, root: 'root allowed' | 'no root' = 'no root'): string {
  if (typeof path !== 'string')
    throw new InvalidPathError(`a path is text, got ${path === null ? 'null' : typeof path}`);
  const shown = JSON.stringify(path.length > 200 ? `${path.slice(0, 200)}…` : path);
  if (!path.startsWith('/')) throw new InvalidPathError(`path ${shown} is not absolute: start it with "/"`);
  if (path === '/') {
    if (root === 'root allowed') return '';
    throw new InvalidPathError(
      'path "/" is the root, which can be listed but neither added nor read: name something below it',
    );
  }
  if (path.length > MAX_LENGTH) throw new InvalidPathError(`path ${shown} is longer than ${MAX_LENGTH} characters`);
  const trimmed = path.endsWith('/') ? path.slice(0, -1) : path;
  for (const name of trimmed.slice(1).split('/')) {
    const fault = nameFault(name);
    if (fault) throw new InvalidPathError(`path ${shown} ${fault}`);
  }
  return trimmed;
}

/**
 * Splits what follows `DIR/` in a stored key into the child's name and what lies below it, or undefined when the key is none that
 * a path could name.
 */
export function splitChild(rest: string): { name: string; below: string } | undefined {
  const slash = rest.indexOf('/');
  if (slash === -1) return isValidName(rest) ? { name: rest, below: '' } : undefined;
  const name = rest.slice(0, slash);
  const below = rest.slice(slash + 1);
  if (!isValidName(name)) return undefined;
  for (const part of below.split('/')) if (!isValidName(part)) return undefined;
  return { name, below };
}
