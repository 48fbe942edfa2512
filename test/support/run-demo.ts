/** Runs the demo at another pace, as its command does: run-demo.ts PACE [--elastic | ENDPOINT…] */
import { runDemo } from '../../src/demo/main.ts';

const [pace, ...rest] = process.argv.slice(2);
const elastic = rest.includes('--elastic');
const endpoints = rest.length > 0 && !elastic ? rest : undefined;
try {
  process.exitCode = await runDemo({ endpoints, elastic, pace: Number(pace) });
} catch (error) {
  process.stderr.write(`${String(error)}\n`);
  process.exitCode = 1;
}
