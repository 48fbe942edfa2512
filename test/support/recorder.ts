import type { KeepAliveObserver, WatchEvent, WatchObserver } from '../../src/core/store.ts';
import { until } from './wait.ts';

/** What a watch stream told, for each watch. */
export class WatchRecorder implements WatchObserver {
  readonly created: number[] = [];
  readonly events = new Map<number, WatchEvent[]>();
  readonly canceled = new Map<number, Error>();
  readonly ends: Error[] = [];

  onCreated(id: number): void {
    this.created.push(id);
  }

  onEvents(id: number, events: readonly WatchEvent[]): void {
    this.events.set(id, [...this.of(id), ...events]);
  }

  onCanceled(id: number, error: Error): void {
    this.canceled.set(id, error);
  }

  onEnd(error: Error): void {
    this.ends.push(error);
  }

  of(id: number): readonly WatchEvent[] {
    return this.events.get(id) ?? [];
  }

  /** Such as `put /a@4`. */
  told(id: number): string[] {
    return this.of(id).map(({ type, kv }) => `${type} ${kv.key}@${kv.modRevision}`);
  }

  untilCreated(id: number): Promise<unknown> {
    return until(() => this.created.includes(id), `watch ${id} to be created`);
  }

  async untilEvents(id: number, count: number): Promise<string[]> {
    await until(() => this.of(id).length >= count, `${count} events of watch ${id}`);
    return this.told(id);
  }

  untilCanceled(id: number): Promise<Error> {
    return until(() => this.canceled.get(id), `watch ${id} to be cancelled`);
  }

  untilEnd(): Promise<Error> {
    return until(() => this.ends[0], 'the watch stream to end');
  }
}

export class KeepAliveRecorder implements KeepAliveObserver {
  readonly alive: (readonly [string, number])[] = [];
  readonly ends: Error[] = [];

  onAlive(leaseId: string, ttl: number): void {
    this.alive.push([leaseId, ttl]);
  }

  onEnd(error: Error): void {
    this.ends.push(error);
  }

  untilAlive(leaseId: string): Promise<readonly [string, number]> {
    return until(() => this.alive.find(([id]) => id === leaseId), `an answer to a keepalive of lease ${leaseId}`);
  }

  untilEnd(): Promise<Error> {
    return until(() => this.ends[0], 'the keepalive stream to end');
  }
}
