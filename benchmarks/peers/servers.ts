/** Servers that only peers need. */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { bindToThisProcess } from '../../test/support/children.ts';
import { freePort } from '../../test/support/ports.ts';
import { until } from '../../test/support/wait.ts';
import { MEMORY } from '../etcd-server.ts';
import { cpuMsOf } from '../process-cpu.ts';
import { ZOOKEEPER_CLASSPATH } from './install.ts';

export interface PeerServer {
  readonly endpoint: string;
  cpuMs(): number | undefined;
  close(): Promise<void>;
}

function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ port, host: '127.0.0.1' });
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });
}

async function serve(
  command: readonly string[],
  port: number,
  endpoint: string,
  onClose: () => void,
): Promise<PeerServer> {
  const [program = '', ...args] = command;
  const child: ChildProcess = spawn(program, args, { stdio: ['ignore', 'ignore', 'ignore'] });
  bindToThisProcess(child);
  const ended = new Promise<void>((resolve) => child.once('close', () => resolve()));
  const close = async () => {
    child.kill('SIGKILL');
    await ended;
    onClose();
  };
  try {
    await until(() => accepts(port), `${program} to listen`);
  } catch (error) {
    await close();
    throw error;
  }
  return { endpoint, cpuMs: () => cpuMsOf([child.pid ?? 0]), close };
}

export async function startZooKeeper(fsync: boolean): Promise<PeerServer> {
  const port = await freePort();
  const folder = mkdtempSync(join(fsync ? tmpdir() : MEMORY, 'zookeeper-bench-'));
  const config = join(folder, 'zoo.cfg');
  const lines = [
    'tickTime=2000',
    `dataDir=${join(folder, 'data')}`,
    `clientPort=${port}`,
    'clientPortAddress=127.0.0.1',
    'maxClientCnxns=0',
    'maxSessionTimeout=600000',
    'admin.enableServer=false',
    `forceSync=${fsync ? 'yes' : 'no'}`,
  ];
  writeFileSync(config, `${lines.join('\n')}\n`);
  const main = 'org.apache.zookeeper.server.quorum.QuorumPeerMain';
  const remove = () => rmSync(folder, { recursive: true, force: true });
  process.once('exit', remove);
  return serve(['java', '-cp', ZOOKEEPER_CLASSPATH, main, config], port, `127.0.0.1:${port}`, remove);
}

/** etcd's own fan-out: it joins the watches of its clients into one. */
export async function startGrpcProxy(endpoint: string, binary: string): Promise<PeerServer> {
  const port = await freePort();
  const address = `127.0.0.1:${port}`;
  const command = [binary, 'grpc-proxy', 'start', '--endpoints', endpoint, '--listen-addr', address];
  return serve(command, port, `http://${address}`, () => {});
}
