#!/usr/bin/env node
/**
 * Makes a fresh clone ready for tests, demo and benchmarks: the npm packages that package-lock.json names, and etcd with etcdctl.
 * Says nothing when nothing is lacking. Plain Node, because it runs before anything is installed.
 *
 *   node scripts/prepare.mjs          packages and etcd
 *   node scripts/prepare.mjs --demo   as before, but with ETCD_ENDPOINTS set etcd is not needed here
 */
import { spawnSync } from 'node:child_process';
import { accessSync, constants, readFileSync, statSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const OLDEST_NODE = [20, 19];
const OLDEST_ETCD = [3, 4];
const PROGRAMS = ['etcd', 'etcdctl'];

const say = (line) => process.stderr.write(`prepare: ${line}\n`);

function fail(...lines) {
  for (const line of lines) say(line);
  process.exit(1);
}

const isOlder = ([major, minor], [oldestMajor, oldestMinor]) =>
  major < oldestMajor || (major === oldestMajor && minor < oldestMinor);

function run(command, args, options = {}) {
  const { error, status } = spawnSync(command, args, {
    cwd: root,
    // stdout stays clean for whoever reads the tests' results.
    stdio: ['ignore', process.stderr, process.stderr],
    ...options,
  });
  return error === undefined && status === 0;
}

// --- the npm packages

const readLock = (path) => {
  try {
    return JSON.parse(readFileSync(join(root, path), 'utf8')).packages;
  } catch {
    return undefined;
  }
};

/** npm notes what it installed in node_modules/.package-lock.json; an interrupted install leaves none. */
function packagesAreInstalled() {
  const wanted = readLock('package-lock.json');
  if (wanted === undefined) fail('package-lock.json is missing or damaged: restore it from version control');
  const installed = readLock('node_modules/.package-lock.json');
  if (installed === undefined) return false;
  return Object.entries(wanted).every(([path, { version, integrity, optional, devOptional }]) => {
    if (path === '') return true;
    const there = installed[path];
    // Optional ones are built for other systems, mostly.
    if (there === undefined) return optional === true || devOptional === true;
    return there.version === version && there.integrity === integrity;
  });
}

function preparePackages() {
  if (packagesAreInstalled()) return;
  say('installing the npm packages (npm ci)');
  const args = ['ci', '--include=dev', '--no-audit', '--no-fund'];
  const npm = process.env.npm_execpath;
  const done = npm?.endsWith('npm-cli.js')
    ? run(process.execPath, [npm, ...args])
    : run('npm', args, { shell: process.platform === 'win32' });
  if (!done) fail('npm ci failed, see above; it needs the npm registry');
}

// --- etcd

function isExecutable(path) {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}

function find(program) {
  const { ETCD_BIN_DIR, PATH = '' } = process.env;
  // A directory that is named must be the one used: a typing error should not test another etcd.
  const dirs = ETCD_BIN_DIR ? [ETCD_BIN_DIR] : PATH.split(delimiter).filter((dir) => dir !== '');
  return dirs.map((dir) => join(dir, program)).find(isExecutable);
}

const missingPrograms = () => PROGRAMS.filter((program) => find(program) === undefined);

/** The ways to install etcd, each with the commands that are tried one after the other until etcd is there. */
const INSTALLERS = [
  {
    tool: 'apt-get',
    asRoot: true,
    before: ['apt-get', '-q', 'update'],
    attempts: [
      ['apt-get', '-qy', '-o', 'DPkg::Lock::Timeout=300', 'install', 'etcd-server', 'etcd-client'],
      // Older releases have both in one package.
      ['apt-get', '-qy', '-o', 'DPkg::Lock::Timeout=300', 'install', 'etcd'],
    ],
  },
  { tool: 'brew', asRoot: false, attempts: [['brew', 'install', 'etcd']] },
  { tool: 'dnf', asRoot: true, attempts: [['dnf', '-y', 'install', 'etcd']] },
  { tool: 'apk', asRoot: true, attempts: [['apk', 'add', 'etcd', 'etcd-ctl']] },
];

const isOnPath = (tool) => (process.env.PATH ?? '').split(delimiter).some((dir) => isExecutable(join(dir, tool)));

/** What to put before a command so that it runs as root; undefined when that cannot be had without asking for a password. */
function rootPrefix() {
  if (process.getuid?.() === 0) return [];
  const silently = { stdio: 'ignore' };
  return isOnPath('sudo') && run('sudo', ['-n', 'true'], silently) ? ['sudo', '-n'] : undefined;
}

function installEtcd() {
  const installer = INSTALLERS.find(({ tool }) => isOnPath(tool));
  if (installer === undefined) return;
  const prefix = installer.asRoot ? rootPrefix() : [];
  if (prefix === undefined) return;
  const execute = (command) => {
    // Through env, because sudo drops what it is not told to keep.
    const [program, ...args] = [...prefix, 'env', 'DEBIAN_FRONTEND=noninteractive', ...command];
    say(`installing etcd: ${[...prefix, ...command].join(' ')}`);
    return run(program, args);
  };
  if (installer.before !== undefined) execute(installer.before);
  for (const command of installer.attempts) {
    execute(command);
    if (missingPrograms().length === 0) return;
  }
}

function etcdVersion() {
  const { stdout } = spawnSync(find('etcd'), ['--version'], { encoding: 'utf8' });
  const [, major, minor] = /etcd Version: (\d+)\.(\d+)/.exec(stdout ?? '') ?? [];
  return major === undefined ? undefined : [Number(major), Number(minor)];
}

const BY_HAND = [
  'Install etcd 3.4 or newer, with etcdctl, in one of these ways:',
  '  Debian, Ubuntu:  sudo apt-get update && sudo apt-get install -y etcd-server etcd-client',
  '  macOS:           brew install etcd',
  '  any other:       unpack a release of https://github.com/etcd-io/etcd/releases and set ETCD_BIN_DIR to its folder',
  'Nothing has to be started: tests and demo start their own, on free ports.',
];

function prepareEtcd() {
  if (missingPrograms().length > 0 && !process.env.ETCD_BIN_DIR) installEtcd();
  const missing = missingPrograms();
  if (missing.length > 0) {
    const where = process.env.ETCD_BIN_DIR ? `in ETCD_BIN_DIR (${process.env.ETCD_BIN_DIR})` : 'on the PATH';
    fail(`${missing.join(' and ')} not found ${where}.`, ...BY_HAND);
  }
  const version = etcdVersion();
  if (version === undefined) fail(`${find('etcd')} does not tell its version: is it etcd?`, ...BY_HAND);
  if (isOlder(version, OLDEST_ETCD)) fail(`${find('etcd')} is ${version.join('.')}, which is too old.`, ...BY_HAND);
}

// ---

if (isOlder(process.versions.node.split('.').map(Number), OLDEST_NODE)) {
  fail(`this is Node ${process.versions.node}; ${OLDEST_NODE.join('.')} or newer is needed`);
}
preparePackages();
if (!(process.argv.includes('--demo') && process.env.ETCD_ENDPOINTS)) prepareEtcd();
