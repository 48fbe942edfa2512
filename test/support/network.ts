/** Hosts with a network namespace each, on one bridge, so that they can be cut off as by a switch that drops everything. Linux, root. */
import { execFileSync } from 'node:child_process';
import type { Place } from './elastic.ts';

const PORTS = [2379, 2380];

function ip(...args: string[]): void {
  execFileSync('ip', args, { stdio: ['ignore', 'ignore', 'pipe'] });
}

/** Why there can be no such network here; `undefined` when there can. */
export function networkFault(): string | undefined {
  const name = `ee${process.pid}probe`;
  try {
    ip('netns', 'add', name);
    ip('netns', 'del', name);
    return undefined;
  } catch (error) {
    return (error as Error).message.trim();
  }
}

let made = 0;

export class TestNetwork {
  /** At most 15 characters with what is appended, the kernel's limit for a link's name. */
  readonly #prefix = `e${process.pid.toString(36)}${(++made).toString(36)}`;
  readonly #bridge = `${this.#prefix}br`;
  /** Of the addresses set aside for measuring network devices, one each for a network: nobody routes them. */
  readonly #net = `198.${18 + (process.pid % 2)}.${(Math.floor(process.pid / 2) + 16 * made) % 256}`;
  readonly #hosts = new Set<number>();

  constructor() {
    ip('link', 'add', this.#bridge, 'type', 'bridge');
    ip('address', 'add', `${this.#net}.254/24`, 'dev', this.#bridge);
    ip('link', 'set', this.#bridge, 'up');
  }

  /** A namespace for the nth host, connected. */
  place(number: number): Place {
    const { space, outside, inside } = this.#names(number);
    const address = `${this.#net}.${number}`;
    ip('netns', 'add', space);
    this.#hosts.add(number);
    ip('link', 'add', outside, 'type', 'veth', 'peer', 'name', inside, 'netns', space);
    ip('link', 'set', outside, 'master', this.#bridge, 'up');
    ip('-n', space, 'address', 'add', `${address}/24`, 'dev', inside);
    ip('-n', space, 'link', 'set', inside, 'up');
    ip('-n', space, 'link', 'set', 'lo', 'up');
    return { address, ports: PORTS, within: ['ip', 'netns', 'exec', space] };
  }

  /** Nothing gets in or out any more, and nobody is told. */
  cut(number: number): void {
    ip('link', 'set', this.#names(number).outside, 'nomaster');
  }

  heal(number: number): void {
    ip('link', 'set', this.#names(number).outside, 'master', this.#bridge);
  }

  destroy(): void {
    for (const number of this.#hosts) ip('netns', 'del', this.#names(number).space);
    ip('link', 'del', this.#bridge);
  }

  #names(number: number): { readonly space: string; readonly outside: string; readonly inside: string } {
    const space = `${this.#prefix}h${number}`;
    return { space, outside: `${space}o`, inside: `${space}i` };
  }
}
