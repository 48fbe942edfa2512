import type { Listing } from '../ephemeral/api.ts';
import type { TextOutput } from './context.ts';

/**
 * What a terminal would act on, what would break a line, and what nobody could see: control characters, line and paragraph
 * separators, marks that change the direction of writing, zero-width characters (by which two names look the same; only within an
 * emoji they stay), halves of surrogate pairs. And the backslash, so that the escaped form is not ambiguous.
 */
const UNSAFE =
  /[\\\p{Cc}\p{Cs}\p{Zl}\p{Zp}]|(?!(?<=\p{Extended_Pictographic}[\ufe0f\u{1f3fb}-\u{1f3ff}]?)\u200d(?=\p{Extended_Pictographic})|(?<=\p{Extended_Pictographic})\ufe0f)[\p{Cf}\p{Default_Ignorable_Code_Point}]/gu;

const SHORT: Readonly<Record<string, string>> = { '\\': '\\\\', '\n': '\\n', '\r': '\\r', '\t': '\\t' };

function escapeCharacter(character: string): string {
  const code = character.codePointAt(0) ?? 0;
  const hex = code.toString(16);
  if (code > 0xffff) return `\\u{${hex}}`;
  return SHORT[character] ?? (code <= 0xff ? `\\x${hex.padStart(2, '0')}` : `\\u${hex.padStart(4, '0')}`);
}

/** One line, harmless on a terminal, that names the text unambiguously. Names and values are whatever anyone wrote. */
export function escapeText(text: string): string {
  return text.replace(UNSAFE, escapeCharacter);
}

/** Whether the text holds nothing that `escapeText` would have to escape, but for the backslash. */
export function isPlain(text: string): boolean {
  return escapeText(text.replaceAll('\\', '')) === text.replaceAll('\\', '');
}

/** As `escapeText`, but lines stay lines: for a value shown on its own. */
export function escapeLines(text: string): string {
  return text.replace(UNSAFE, (character) => (/[\n\t\\]/.test(character) ? character : escapeCharacter(character)));
}

/** As etcdctl shows leases. Etcd's own JSON has them in decimal. */
export function leaseHex(lease: string): string {
  return BigInt.asUintN(64, BigInt(lease)).toString(16);
}

/** Of every URL in the text what stands before the host is left out: it may be a password. */
export function withoutUserinfo(text: string): string {
  return text.replace(/([a-z][a-z0-9+.-]*:\/\/)[^\s"']*@/gi, '$1…@');
}

/** As JSON itself escapes: by halves of surrogate pairs. */
function escapeForJson(character: string): string {
  const units = Array.from({ length: character.length }, (_, index) => character.charCodeAt(index));
  return units.map((unit) => `\\u${unit.toString(16).padStart(4, '0')}`).join('');
}

/** Read back it is just what was given; on a terminal it is as harmless as any other line. */
export function writeJson(output: TextOutput, value: unknown): void {
  const json = JSON.stringify(value).replace(UNSAFE, (character) =>
    character === '\\' ? character : escapeForJson(character),
  );
  output.write(`${json}\n`);
}

/** A child as a line shows it: `name`, `name/` for a directory, `name<TAB>value` where values were asked for. */
export function childText(listing: Listing, name: string, directories: ReadonlySet<string>): string {
  const shown = escapeText(name) + (directories.has(name) ? '/' : '');
  const entry = listing.entries?.get(name);
  return entry === undefined ? shown : `${shown}\t${escapeText(entry.value)}`;
}
