import type { Connection } from '../core/connection.ts';
import type { EphemeralError } from '../core/errors.ts';
import type { WatchHub } from '../core/watch-hub.ts';
import type { ChildMap } from './child-map.ts';
import type { Source } from './directory.ts';
import type { DirectoryKeys } from './keys.ts';
import type { Telemetry } from './stats.ts';

/** A directory as it is followed, one way or the other. */
export interface View {
  /** Written by whoever follows: keep `now()`. */
  readonly children: ChildMap;
  /** Up to which revision each source has been followed. */
  readonly revisions: Readonly<Record<Source, number>>;
  readonly epoch: number;
}

/** What a reading of the directory itself also told. */
export interface Existence {
  readonly isAdded: boolean;
  readonly isKey: boolean;
}

export interface ReaderEvents {
  /** The directory was read: at the start, and after a gap. */
  onRead(existence: Existence): void;
  /** Children came, went or changed since. */
  onChanged(): void;
  /** It has ended: the store will not let us. */
  onRefused(error: EphemeralError): void;
}

export interface Reader {
  /** Undefined until the first reading. */
  readonly view: View | undefined;
  /** Asks the store, cheaply, whether the view holds all that happened. What it does not hold is on its way. */
  isCurrent(): Promise<boolean>;
  /** Frees everything; resolves when what it held in the store is given back. */
  close(): Promise<void>;
}

export interface ReaderContext {
  readonly connection: Connection;
  readonly hub: WatchHub;
  readonly telemetry: Telemetry;
  readonly path: string;
  readonly directory: DirectoryKeys;
  readonly withValues: boolean;
}
