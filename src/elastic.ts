/** An etcd cluster that starts, grows, shrinks and heals by itself. */
export { dynamicSize } from './elastic/chooser.ts';
export {
  ElasticCluster,
  type ElasticExit,
  type HostStatus,
  type Interruption,
} from './elastic/elastic-cluster.ts';
export {
  ClusterStateError,
  DuplicateHostError,
  ElasticTimeoutError,
  EtcdProcessError,
  FolderInUseError,
  WrongClusterError,
} from './elastic/errors.ts';
export type { EtcdTuning, ServerTls } from './elastic/etcd-arguments.ts';
export type { Blocked, Change, Chooser, MemberView, Volunteer, Wanted } from './elastic/model.ts';
export type { ElasticOptions } from './elastic/options.ts';
