/** Who takes part: which process holds which clients, and what each of them does. */

export interface ServicePlan {
  readonly key: string;
  readonly heartbeat: 'lease' | 'put';
}

export interface WatcherPlan {
  readonly path: string;
  readonly via: 'mirror' | 'direct';
  readonly values: boolean;
}

/** A client with a connection and a session of its own. */
export interface ClientPlan {
  readonly candidate: boolean;
  readonly service?: ServicePlan;
  readonly watcher?: WatcherPlan;
}

export interface ProcessPlan {
  readonly name: string;
  /** Seconds. */
  readonly ttl: number;
  readonly clients: readonly ClientPlan[];
}

export interface FleetSize {
  readonly services: number;
  readonly watchers: number;
  readonly servicesPerProcess: number;
  readonly watchersPerProcess: number;
  readonly directories: number;
}

export const FULL_SIZE: FleetSize = {
  services: 100,
  watchers: 100,
  servicesPerProcess: 10,
  watchersPerProcess: 25,
  directories: 4,
};

export function directoriesOf({ directories }: FleetSize): string[] {
  return Array.from({ length: directories }, (_, i) => `/svc/d${i}`);
}

/** In turn, seconds: the default, and half of it. A busy machine stands still for too long for less. */
const TTLS = [5, 10];

export function planFleet(size: FleetSize): ProcessPlan[] {
  const directories = directoriesOf(size);
  const services = Array.from({ length: size.services }, (_, i) => ({
    candidate: false,
    service: {
      key: `${directories[i % directories.length]}/s${String(i).padStart(3, '0')}`,
      heartbeat: i % 5 === 4 ? ('put' as const) : ('lease' as const),
    },
  }));
  const watchers = Array.from({ length: size.watchers }, (_, i) => ({
    candidate: i % 4 !== 3,
    watcher: {
      path: directories[i % directories.length] as string,
      via: i % 5 === 2 ? ('direct' as const) : ('mirror' as const),
      values: i % 3 === 1,
    },
  }));
  return [
    ...grouped('services', services, size.servicesPerProcess),
    ...grouped('watchers', rotated(watchers, directories.length), size.watchersPerProcess),
  ];
}

/** So that which directory a watcher watches and how it does so go together in every way. */
function rotated<T extends { readonly watcher: WatcherPlan }>(watchers: readonly T[], count: number): T[] {
  return watchers.map((it, i) => {
    const path = `/svc/d${(i + Math.floor(i / count)) % count}`;
    return { ...it, watcher: { ...it.watcher, path } };
  });
}

function grouped(kind: string, clients: readonly ClientPlan[], size: number): ProcessPlan[] {
  const count = Math.ceil(clients.length / size);
  return Array.from({ length: count }, (_, i) => ({
    name: `${kind}-${i + 1}`,
    ttl: TTLS[i % TTLS.length] as number,
    clients: clients.slice(i * size, (i + 1) * size),
  }));
}
