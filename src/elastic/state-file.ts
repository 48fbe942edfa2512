import { closeSync, fsyncSync, openSync, readFileSync, renameSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { messageOf } from '../core/log.ts';
import { ClusterStateError } from './errors.ts';
import { makeFolder } from './new-folder.ts';

/** A member as recovery needs to know it, when the cluster itself cannot be asked. */
export interface KnownMember {
  readonly name: string;
  readonly id: string;
  readonly peerUrls: readonly string[];
  readonly clientUrls: readonly string[];
}

/** What a host remembers of its cluster, apart from the data and kept after a leave. */
export interface HostState {
  readonly host: string;
  /** Another cluster is refused. */
  readonly clusterId: string;
  /** The member it is, or was last; absent on a host that never was one. */
  readonly memberId?: string | undefined;
  /** How that member was asked to start: needed until its WAL exists. */
  readonly initialCluster?: string | undefined;
  /** The client URLs of the cluster, as last known. */
  readonly endpoints: readonly string[];
  readonly members: readonly KnownMember[];
  /** Of this host's member, when it was last looked at: the highest one is what a recovery starts from. */
  readonly raftIndex: number;
  /** The agent's last start: what that one registered may be taken away, since this one holds the folder's lock. */
  readonly incarnation: string;
}

const FILE = 'state.json';

export class StateFile {
  readonly path: string;
  readonly #unmake: () => void;
  #state: HostState | undefined;

  /** @throws ClusterStateError when there is a file and it cannot be read */
  constructor(folder: string) {
    this.#unmake = makeFolder(folder);
    this.path = join(folder, FILE);
    this.#state = readState(folder);
  }

  /** As the data folder's. What etcd wrote of its failure stays. */
  discardUnused(): void {
    this.#unmake();
  }

  get current(): HostState | undefined {
    return this.#state;
  }

  /** Replaces the file as a whole and waits for the disk: it must be there before what it tells of. */
  write(state: HostState): void {
    if (JSON.stringify(state) === JSON.stringify(this.#state)) return;
    const draft = `${this.path}.new`;
    const file = openSync(draft, 'w', 0o600);
    try {
      writeSync(file, `${JSON.stringify(state, undefined, 2)}\n`);
      fsyncSync(file);
    } finally {
      closeSync(file);
    }
    renameSync(draft, this.path);
    this.#state = state;
  }

  update(what: Partial<HostState>): void {
    if (this.#state) this.write({ ...this.#state, ...what });
  }
}

export function readState(folder: string): HostState | undefined {
  const path = join(folder, FILE);
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw new ClusterStateError(`cannot read ${path}: ${messageOf(error)}`, { cause: error });
  }
  try {
    const state = JSON.parse(text) as HostState;
    if (typeof state.clusterId !== 'string' || !Array.isArray(state.endpoints)) throw new Error('fields are missing');
    return state;
  } catch (error) {
    const advice = 'restore it from a backup; without it, remove it only together with the data';
    throw new ClusterStateError(`${path} is damaged (${messageOf(error)}): ${advice}`, { cause: error });
  }
}
