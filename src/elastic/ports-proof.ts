import { createServer } from 'node:net';
import { isSocket } from './urls.ts';

/** Says which of the URLs cannot be listened at, or `undefined` when all can. */
export async function portsFault(urls: readonly string[]): Promise<string | undefined> {
  // etcd replaces a socket that lies in its folder, which is ours alone.
  for (const url of urls.filter((one) => !isSocket(one))) {
    const fault = await portFault(url);
    if (fault !== undefined) return fault;
  }
  return undefined;
}

function portFault(url: string): Promise<string | undefined> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', (error: NodeJS.ErrnoException) => resolve(describe(url, error)));
    const host = hostname.replace(/^\[|\]$/g, '');
    server.listen({ port: Number(port), host, exclusive: true }, () => server.close(() => resolve(undefined)));
  });
}

function describe(url: string, error: NodeJS.ErrnoException): string {
  if (error.code === 'EADDRINUSE') return `${url} is in use by another process`;
  if (error.code === 'EADDRNOTAVAIL' || error.code === 'ENOTFOUND') return `${url} is no address of this machine`;
  return `${url} cannot be listened at: ${error.message}`;
}
