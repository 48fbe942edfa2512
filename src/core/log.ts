import createDebug from 'debug';

/** `debug` namespaces, one for each part: DEBUG=ephemeral:* shows every change of state with its reason. */
export function debugLog(part: string): (format: string, ...args: unknown[]) => void {
  return createDebug(`ephemeral:${part}`);
}

/** The message of anything thrown. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
