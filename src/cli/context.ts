import type { ClientOptions, Ephemeral } from '../ephemeral/api.ts';
import type { PathStat } from '../ephemeral/inspect.ts';

/** What the command asks of `EtcdEphemeral.connect`. */
export interface ConnectOptions extends ClientOptions {
  hosts: string[];
  credentials?: { rootCertificate: Buffer; certChain?: Buffer; privateKey?: Buffer } | undefined;
  auth?: { username: string; password: string } | undefined;
  /** Seconds. */
  connectTimeout: number;
  signal: AbortSignal;
}

/** A stream that text goes to. */
export interface TextOutput {
  write(text: string): void;
  readonly isTTY: boolean;
  /** Aborted when the reader has gone, as with `| head`. */
  readonly closed: AbortSignal;
}

/** `process`, as far as its signals go. */
export interface SignalSource {
  on(signal: NodeJS.Signals, listener: () => void): unknown;
  off(signal: NodeJS.Signals, listener: () => void): unknown;
}

/** All that the command touches outside itself. */
export interface Context {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly version: string;
  readonly stdout: TextOutput;
  readonly stderr: TextOutput;
  readonly signals: SignalSource;
  connect(options: ConnectOptions): Promise<Ephemeral>;
  inspect(client: Ephemeral, path: string, options: { signal: AbortSignal }): Promise<PathStat>;
  runDemo(args: { endpoints: readonly string[] | undefined; elastic: boolean }): Promise<number>;
}
