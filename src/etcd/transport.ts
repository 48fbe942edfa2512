/** One connection to one etcd member: its calls, its streams, its token, its end. */
import { Etcd3, type IOptions, type Services } from 'etcd3';
import { ConnectionError, InvalidOptionError } from '../core/errors.ts';
import type { Endpoint } from './endpoints.ts';
import type { Auth, Credentials } from './options.ts';
import { OwnSockets } from './own-sockets.ts';
import { type GrpcFailure, isAboutUser, isAuthDisabled, isStaleToken, translateError } from './translate-error.ts';

/** The parts of grpc-js that we touch, which has no place among our dependencies: it is etcd3's. */
interface Metadata {
  set(key: string, value: string): void;
  clone(): Metadata;
}

interface Channel {
  close(): void;
}

export interface RawStream<Request, Response> {
  write(request: Request): unknown;
  cancel(): void;
  on(event: 'data', listener: (response: Response) => void): this;
  on(event: 'error', listener: (failure: GrpcFailure) => void): this;
  on(event: 'end', listener: () => void): this;
}

type UnaryMethod = (
  request: object,
  metadata: Metadata,
  options: { readonly deadline: number },
  callback: (failure: GrpcFailure | null, response: unknown) => void,
) => { cancel(): void };

type Decode<Message> = (bytes: Buffer) => Message;

/** What a client made from a service's definition knows of a method. */
interface MethodDefinition {
  readonly path: string;
  readonly requestSerialize: (request: object) => Buffer;
  readonly responseDeserialize: Decode<object>;
}

type DownloadMethod = (
  request: object,
  metadata: Metadata,
  options: { readonly deadline: number },
) => RawStream<object, object>;

type ServiceName = 'KV' | 'Lease' | 'Watch' | 'Auth' | 'Cluster' | 'Maintenance';

interface Client {
  readonly constructor: { readonly service: Readonly<Record<string, MethodDefinition>> };
  makeBidiStreamRequest(
    path: string,
    serialize: MethodDefinition['requestSerialize'],
    deserialize: Decode<unknown>,
    metadata: Metadata,
    options: object,
  ): RawStream<object, object>;
}

type Methods = Readonly<Record<string, UnaryMethod>>;

const GRPC_DEFAULTS = {
  // etcd closes connections that ping more often than every 5 s.
  'grpc.keepalive_time_ms': 5_000,
  'grpc.keepalive_timeout_ms': 3_000,
  'grpc.max_receive_message_length': -1,
  'grpc.max_send_message_length': -1,
  'grpc.initial_reconnect_backoff_ms': 100,
  'grpc.max_reconnect_backoff_ms': 1_000,
  // A new transport must not be given the dead socket that another client in this process still holds.
  'grpc.use_local_subchannel_pool': 1,
};

type Policy = NonNullable<NonNullable<IOptions['faultHandling']>['global']>;

const NEVER_ABORTED = new AbortController().signal;

/** etcd3's own policies hold healthy calls back for seconds; retrying is decided above. */
const NO_POLICY: Policy = {
  _altReturn: undefined as never,
  onSuccess: () => ({ dispose() {} }),
  onFailure: () => ({ dispose() {} }),
  execute: async (fn, signal = NEVER_ABORTED) => fn({ signal }),
};

/** etcd3's client, for the sake of the connection it makes. */
class Connection extends Etcd3 {
  async service(name: keyof typeof Services) {
    return this.pool.withConnection(name, ({ client, metadata }) => ({ client, metadata }));
  }
}

interface PendingCall {
  cancel(): void;
  reject(error: Error): void;
}

export interface TransportOptions {
  readonly endpoint: Endpoint;
  readonly credentials: Credentials | undefined;
  readonly auth: Auth | undefined;
  readonly grpcOptions: Readonly<Record<string, string | number>> | undefined;
}

export class Transport {
  readonly endpoint: string;
  readonly #clients: Readonly<Record<ServiceName, Client>>;
  readonly #channel: Channel;
  /** `undefined` where the user lets clients share sockets: then none is ours to destroy. */
  readonly #sockets: OwnSockets | undefined;
  readonly #auth: Auth | undefined;
  /** Without a token. */
  readonly #bareMetadata: Metadata;
  #metadata: Metadata;
  #authenticating: Promise<void> | undefined;
  #token: string | undefined;
  #closed = false;
  readonly #pending = new Set<PendingCall>();
  readonly #streams = new Set<{ cancel(): void }>();

  private constructor(
    options: TransportOptions,
    clients: Readonly<Record<ServiceName, Client>>,
    channel: Channel,
    metadata: Metadata,
  ) {
    this.endpoint = options.endpoint.url;
    this.#auth = options.auth;
    this.#clients = clients;
    this.#channel = channel;
    this.#sockets = sharesSockets(options) ? undefined : new OwnSockets();
    this.#bareMetadata = metadata;
    this.#metadata = metadata;
  }

  /** Prepares a connection; it is made with the first call, which must be inside `connecting`. */
  static async open(options: TransportOptions): Promise<Transport> {
    const { endpoint, credentials } = options;
    // One channel for all services: one socket, whichever pool of subchannels the user chose.
    const channelOptions: Record<string, unknown> = { ...GRPC_DEFAULTS, ...options.grpcOptions };
    const connection = connect({
      hosts: endpoint.url,
      ...(credentials && { credentials: withoutUndefined(credentials) }),
      grpcOptions: channelOptions,
      faultHandling: { host: () => NO_POLICY, global: NO_POLICY },
    });
    const kv = await connection.service('KV');
    const channel = kv.client.getChannel();
    channelOptions.channelOverride = channel;
    const [lease, watch, auth, cluster, maintenance] = await Promise.all([
      connection.service('Lease'),
      connection.service('Watch'),
      connection.service('Auth'),
      connection.service('Cluster'),
      connection.service('Maintenance'),
    ]);
    const clients = {
      KV: kv.client,
      Lease: lease.client,
      Watch: watch.client,
      Auth: auth.client,
      Cluster: cluster.client,
      Maintenance: maintenance.client,
    };
    return new Transport(options, clients as unknown as Record<ServiceName, Client>, channel, kv.metadata);
  }

  /** Runs the calls that make the connection. Its sockets are this transport's from there on. */
  connecting<T>(calls: () => Promise<T>): Promise<T> {
    return this.#sockets === undefined ? calls() : this.#sockets.claim(calls);
  }

  /** Changes with every token; `undefined` where etcd asks for none. */
  get token(): string | undefined {
    return this.#token;
  }

  get authenticates(): boolean {
    return this.#auth !== undefined;
  }

  /** Whether its socket is gone. grpc-js would make another one; but who answers there has to be proven first. */
  get lost(): boolean {
    return this.#sockets?.lost ?? false;
  }

  get closed(): boolean {
    return this.#closed;
  }

  /** Gets a token, where there are a user and a password to get it with. Calls at the same time share one request. */
  authenticate(timeoutMs: number): Promise<void> {
    this.#authenticating ??= this.#authenticate(timeoutMs).finally(() => {
      this.#authenticating = undefined;
    });
    return this.#authenticating;
  }

  /** A token that any member has given is known to all of them. */
  present(token: string): void {
    this.#token = token;
    this.#metadata = this.#bareMetadata.clone();
    this.#metadata.set('token', token);
  }

  /** A call with one answer. A token that has run out is renewed, once. Rejects with an EphemeralError. */
  async call<Response>(
    service: 'KV' | 'Lease' | 'Cluster' | 'Maintenance',
    method: string,
    request: object,
    timeoutMs: number,
  ): Promise<Response> {
    const deadline = Date.now() + timeoutMs;
    const token = this.#token;
    try {
      return await this.#once<Response>(service, method, request, this.#metadata, deadline);
    } catch (failure) {
      const mayHelp =
        isStaleToken(failure as GrpcFailure) || (token === undefined && isAboutUser(failure as GrpcFailure));
      if (this.#auth === undefined || !mayHelp) throw this.#translate(failure, timeoutMs);
    }
    if (token === this.#token) await this.authenticate(deadline - Date.now());
    try {
      return await this.#once<Response>(service, method, request, this.#metadata, deadline);
    } catch (failure) {
      throw this.#translate(failure, timeoutMs);
    }
  }

  /**
   * A stream, usable at once: what is written before it is open waits. etcd ends it when its cluster has no leader. `decode`: in
   * place of etcd3's own decoder.
   */
  stream<Request, Response>(
    service: 'Lease' | 'Watch',
    method: string,
    decode?: (bytes: Buffer) => Response,
  ): RawStream<Request, Response> {
    const metadata = this.#metadata.clone();
    metadata.set('hasleader', 'true');
    const client = this.#clients[service];
    const { path, requestSerialize, responseDeserialize } = definitionOf(client, method);
    const stream = client.makeBidiStreamRequest(path, requestSerialize, decode ?? responseDeserialize, metadata, {});
    this.#streams.add(stream);
    return stream as RawStream<Request, Response>;
  }

  /** One request, many answers. */
  download<Response>(
    service: 'Maintenance',
    method: string,
    request: object,
    timeoutMs: number,
  ): RawStream<object, Response> {
    const client = this.#clients[service];
    const start = (client as unknown as Readonly<Record<string, DownloadMethod>>)[method] as DownloadMethod;
    const stream = start.call(client, request, this.#metadata, { deadline: Date.now() + timeoutMs });
    this.#streams.add(stream);
    return stream as RawStream<object, Response>;
  }

  /** Ends a stream that nobody hears any more. */
  release(stream: { cancel(): void }): void {
    this.#streams.delete(stream);
    stream.cancel();
  }

  translate(failure: GrpcFailure): Error {
    return this.#translate(failure);
  }

  /** Ends all calls, streams and the socket. The streams' observers are not told: who closes, knows. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    for (const stream of this.#streams) stream.cancel();
    for (const call of this.#pending) {
      call.reject(new ConnectionError(`the connection to ${this.endpoint} is closed`));
      call.cancel();
    }
    this.#streams.clear();
    this.#pending.clear();
    this.#channel.close();
    this.#sockets?.destroy();
  }

  async #authenticate(timeoutMs: number): Promise<void> {
    if (this.#auth === undefined) return;
    const { username, password } = this.#auth;
    const request = { name: username, password };
    const deadline = Date.now() + timeoutMs;
    try {
      const { token } = await this.#once<{ token: string }>(
        'Auth',
        'authenticate',
        request,
        this.#bareMetadata,
        deadline,
      );
      this.present(token);
    } catch (failure) {
      // As etcd's own clients do: users and passwords may be rolled out before authentication is switched on.
      if (!isAuthDisabled(failure as GrpcFailure)) throw this.#translate(failure, timeoutMs);
      this.#token = undefined;
      this.#metadata = this.#bareMetadata;
    }
  }

  /** Rejects with what gRPC says, or with a ConnectionError when the transport is closed. */
  #once<Response>(
    service: ServiceName,
    method: string,
    request: object,
    metadata: Metadata,
    deadline: number,
  ): Promise<Response> {
    return new Promise((resolve, reject) => {
      if (this.#closed) {
        reject(new ConnectionError(`the connection to ${this.endpoint} is closed`));
        return;
      }
      const client = this.#clients[service];
      const call = ((client as unknown as Methods)[method] as UnaryMethod).call(
        client,
        request,
        metadata,
        { deadline },
        (failure, response) => {
          this.#pending.delete(pending);
          if (failure) reject(failure);
          else resolve(response as Response);
        },
      );
      const pending: PendingCall = { cancel: () => call.cancel(), reject };
      this.#pending.add(pending);
    });
  }

  #translate(failure: unknown, timeoutMs?: number): Error {
    if (failure instanceof ConnectionError) return failure;
    return translateError(failure as GrpcFailure, { endpoint: this.endpoint, timeoutMs });
  }
}

function definitionOf(client: Client, method: string): MethodDefinition {
  const definition = client.constructor.service[method];
  if (!definition) throw new TypeError(`etcd3 knows no ${method}`);
  return definition;
}

function sharesSockets({ grpcOptions }: TransportOptions): boolean {
  return grpcOptions?.['grpc.use_local_subchannel_pool'] === 0;
}

function connect(options: IOptions): Connection {
  try {
    return new Connection(options);
  } catch (cause) {
    throw new InvalidOptionError(`credentials or grpcOptions: ${(cause as Error).message}`, { cause });
  }
}

function withoutUndefined({ rootCertificate, privateKey, certChain }: Credentials) {
  return { rootCertificate, ...(privateKey && { privateKey }), ...(certChain && { certChain }) };
}
