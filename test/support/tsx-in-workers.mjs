/** Loaded with --import after tsx, which up to Node 22 does not take itself to worker threads: sources run there as well. */
import { isMainThread } from 'node:worker_threads';
import { register } from 'tsx/esm/api';

if (!isMainThread) register();
