#!/usr/bin/env node
/**
 * Runs the tests on several versions of Node and etcd, each Node with each etcd. Node comes from the npm package `node`.
 *
 *   NODE_VERSIONS   default "20 22 24"
 *   ETCD_BIN_DIRS   folders with etcd and etcdctl, separated as in PATH; default: ETCD_BIN_DIR, or what is on the PATH
 *
 * Arguments go to ava: npm run test:versions -- test/real/cli.test.ts
 */
import { spawnSync } from 'node:child_process';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const { NODE_VERSIONS = '20 22 24', ETCD_BIN_DIRS = process.env.ETCD_BIN_DIR ?? '' } = process.env;
const ava = join(root, 'node_modules', 'ava', 'entrypoints', 'cli.mjs');

const failed = [];
for (const etcdBinDir of ETCD_BIN_DIRS.split(delimiter)) {
  for (const version of NODE_VERSIONS.split(/[\s,]+/).filter((part) => part !== '')) {
    const name = `Node ${version}, etcd ${etcdBinDir === '' ? 'on the PATH' : `in ${etcdBinDir}`}`;
    process.stdout.write(`\n${name}\n`);
    const env = { ...process.env };
    if (etcdBinDir !== '') env.ETCD_BIN_DIR = etcdBinDir;
    const args = ['--yes', '-p', `node@${version}`, '--', 'node', ava, ...process.argv.slice(2)];
    const { status } = spawnSync('npx', args, { cwd: root, env, stdio: ['ignore', 'inherit', 'inherit'] });
    if (status !== 0) failed.push(name);
  }
}
for (const name of failed) process.stdout.write(`failed: ${name}\n`);
process.exitCode = failed.length > 0 ? 1 : 0;
