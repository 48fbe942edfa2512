/** Starts a process that starts another one in a group of its own, as an elastic host does; prints both pids and stays. */
import { spawn } from 'node:child_process';
import { bindToThisProcess } from './children.ts';

const GRANDCHILD = "require('node:child_process').spawn('sleep', ['600'], { detached: true, stdio: 'ignore' })";
const child = spawn(process.execPath, ['-e', `console.log(${GRANDCHILD}.pid); setInterval(() => {}, 1000)`], {
  stdio: ['ignore', 'pipe', 'inherit'],
});
bindToThisProcess(child);
child.stdout.on('data', (pid: Buffer) => process.stdout.write(`started ${child.pid} ${pid.toString().trim()}\n`));
