/** A TCP proxy that can misbehave as networks do. */
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

export interface Proxy {
  readonly port: number;
  /** `http://127.0.0.1:PORT`, or https if the target is. */
  readonly endpoint: string;
  /** Connections accepted since the start, and those open now. */
  readonly accepted: number;
  readonly open: number;
  readonly bytesUp: number;
  readonly bytesDown: number;
  /** Destroys all connections now; new ones are served. */
  cut(): void;
  /** While on: accepts and forwards nothing either way, and says nothing about it. */
  blackhole(on: boolean): void;
  /** The connections that there are look established from here on and carry nothing; new ones are served. */
  orphan(): void;
  /** Adds so much to each chunk's way, in both directions. */
  delay(ms: number): void;
  /** While on: new connections are accepted and destroyed. */
  refuse(on: boolean): void;
  /** Ends every misbehaviour; what a black hole held back is lost with its connections. */
  heal(): void;
  close(): Promise<void>;
}

/** Node never ends (20.20, at 100 % CPU) after a socket was reset while its FIN was on its way. */
function reset(socket: Socket): void {
  if (socket.writableEnded) socket.destroy();
  else socket.resetAndDestroy();
}

/** Whatever the delay becomes meanwhile, nothing overtakes what went in before it: a stream of bytes keeps its order. */
class DelayLine {
  readonly #delayMs: () => number;
  readonly #waiting: { readonly dueMs: number; readonly run: () => void }[] = [];

  constructor(delayMs: () => number) {
    this.#delayMs = delayMs;
  }

  pass(run: () => void): void {
    const delayMs = this.#delayMs();
    if (delayMs === 0 && this.#waiting.length === 0) {
      run();
      return;
    }
    this.#waiting.push({ dueMs: performance.now() + delayMs, run });
    if (this.#waiting.length === 1) this.#wait();
  }

  #wait(): void {
    const next = this.#waiting[0];
    if (!next) return;
    setTimeout(
      () => {
        this.#waiting.shift();
        next.run();
        this.#wait();
      },
      Math.max(0, next.dueMs - performance.now()),
    );
  }
}

/** `target` is an address such as `http://127.0.0.1:2379`. */
export async function startProxy(target: string): Promise<Proxy> {
  const { protocol, hostname, port: targetPort } = new URL(target);
  const pairs = new Set<readonly [Socket, Socket]>();
  const orphans = new Set<Socket>();
  const state = { accepted: 0, bytesUp: 0, bytesDown: 0, hole: false, refuse: false, delayMs: 0 };

  function pipe(from: Socket, to: Socket, count: (bytes: number) => void): void {
    const held = new DelayLine(() => state.delayMs);
    from.on('data', (chunk: Buffer) => {
      if (state.hole || orphans.has(from)) return;
      count(chunk.length);
      held.pass(() => to.writable && to.write(chunk));
    });
    from.on('end', () => state.hole || orphans.has(from) || held.pass(() => to.end()));
    from.on('error', () => {});
  }

  const server = createServer({ allowHalfOpen: true }, (down) => {
    state.accepted += 1;
    if (state.refuse) {
      down.destroy();
      return;
    }
    const up = connect({ host: hostname, port: Number(targetPort), allowHalfOpen: true });
    const pair = [down, up] as const;
    pairs.add(pair);
    down.setNoDelay();
    up.setNoDelay();
    pipe(down, up, (bytes) => {
      state.bytesUp += bytes;
    });
    pipe(up, down, (bytes) => {
      state.bytesDown += bytes;
    });
    down.on('close', () => {
      pairs.delete(pair);
      for (const socket of pair) orphans.delete(socket);
      up.destroy();
    });
    up.on('close', () => {
      if (!state.hole && !orphans.has(up)) down.destroy();
    });
  });

  function cut(): void {
    for (const [down, up] of pairs) {
      reset(down);
      reset(up);
    }
  }

  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    port,
    endpoint: `${protocol}//127.0.0.1:${port}`,
    get accepted() {
      return state.accepted;
    },
    get open() {
      return pairs.size;
    },
    get bytesUp() {
      return state.bytesUp;
    },
    get bytesDown() {
      return state.bytesDown;
    },
    cut,
    blackhole(on) {
      if (state.hole && !on) cut();
      state.hole = on;
    },
    orphan() {
      for (const socket of [...pairs].flat()) orphans.add(socket);
    },
    delay(ms) {
      state.delayMs = ms;
    },
    refuse(on) {
      state.refuse = on;
    },
    heal() {
      if (state.hole) cut();
      state.hole = false;
      state.refuse = false;
      state.delayMs = 0;
    },
    close() {
      cut();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}
