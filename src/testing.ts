/** The same client on a model of etcd in memory, for tests without an etcd. */
export { MemoryEtcd, type MemoryEtcdOptions } from './memory-etcd.ts';
