/** One client of a fleet. */

/** What a member's list should come to. */
export interface Goal {
  readonly size: number;
  /** What every name then begins with; undefined: any. A later generation sorts after an earlier one. */
  readonly generation?: string | undefined;
}

export interface Member {
  join(name: string): Promise<void>;
  leave(): Promise<void>;
  holds(goal: Goal): boolean;
  names(): readonly string[];
  /** Answers of the store that carried events, and the events in them. */
  readonly heard: { readonly messages: number; readonly events: number };
  readonly isMaster: boolean;
  close(): Promise<void>;
}

export interface MemberOptions {
  readonly index: number;
  readonly endpoint: string;
  readonly namespace: string;
  readonly ttl: number;
  readonly heartbeat: 'lease' | 'put';
  /** Absent: this member does not watch. */
  readonly onChange?: (() => void) | undefined;
}

export type OpenMember = (options: MemberOptions) => Promise<Member>;

/** Below the namespace, where all members register. */
export const DIRECTORY = '/services/web';

/** Below the namespace, where one process watches many directories. */
export function watchedDirectory(index: number): string {
  return `/watched/directory-${String(index).padStart(5, '0')}`;
}

export const VALUE = 'http://10.0.0.1:8080';

/** The list as its user keeps it where the store tells of single events. */
export class NameSet {
  readonly #names = new Set<string>();
  readonly #sizes = new Map<string, number>();

  add(name: string): void {
    if (this.#names.has(name)) return;
    this.#names.add(name);
    this.#count(name, 1);
  }

  delete(name: string): void {
    if (this.#names.delete(name)) this.#count(name, -1);
  }

  replace(names: Iterable<string>): void {
    this.#names.clear();
    this.#sizes.clear();
    for (const name of names) this.add(name);
  }

  holds({ size, generation }: Goal): boolean {
    return this.#names.size === size && (generation === undefined || (this.#sizes.get(generation) ?? 0) === size);
  }

  names(): readonly string[] {
    return [...this.#names].sort();
  }

  #count(name: string, by: number): void {
    const generation = generationOf(name);
    this.#sizes.set(generation, (this.#sizes.get(generation) ?? 0) + by);
  }
}

export function generationName(generation: number): string {
  return `g${String(generation).padStart(4, '0')}`;
}

function generationOf(name: string): string {
  return name.slice(0, name.indexOf('-'));
}
