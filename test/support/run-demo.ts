/** Runs the demo at another pace, as its command does: run-demo.ts PACE [ENDPOINT…] */
import { runDemo } from '../../src/demo/main.ts';

const [pace, ...endpoints] = process.argv.slice(2);
try {
  process.exitCode = await runDemo({ endpoints: endpoints.length > 0 ? endpoints : undefined, pace: Number(pace) });
} catch (error) {
  process.stderr.write(`${String(error)}\n`);
  process.exitCode = 1;
}
