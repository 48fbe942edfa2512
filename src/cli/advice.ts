import { EphemeralError } from '../core/errors.ts';
import { messageOf } from '../core/log.ts';

/**
 * The library's errors tell a programmer what to do. Here are, word for word, the pieces of advice that a command can meet, with what
 * helps in a shell instead; a test looks for each in the sources.
 */
export const ADVICE: readonly (readonly [library: string, command: string])[] = [
  [': pass exclusive: false where that is fine', ''],
  ['was not added with addDir', 'was not added with add-dir'],
  ['read it with list', 'read it with ls'],
  [
    "add it with addDir, add a key below it, or watch it with missing: 'wait'",
    'add it with add-dir, register something below it, or wait for it with ls --watch --wait',
  ],
  ['or correct hosts', 'or correct --endpoints'],
  ['check the option auth', 'check --user and --password-file'],
  ['give credentials.certChain and privateKey', 'give --cert and --key'],
  ['credentials.certChain', '--cert'],
  ['credentials.rootCertificate', '--cacert'],
  ['credentials: not usable as PEM', '--cacert, --cert or --key is not usable as PEM'],
  ['grant its role the key range', 'grant its role the key range (ephemeral roles prints how)'],
];

/** The message of anything thrown, with advice for a shell. */
export function adviceOf(error: unknown): string {
  const message = messageOf(error);
  if (!(error instanceof EphemeralError)) return message;
  return ADVICE.reduce((text, [library, command]) => text.replace(library, command), message);
}
