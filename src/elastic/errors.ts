import { EphemeralError } from '../core/errors.ts';

/** etcd cannot be run: it is missing, too old, or ends at once. */
export class EtcdProcessError extends EphemeralError {
  readonly code = 'ETCD_PROCESS';
}

/** Another cluster answers, or the data is another cluster's, than the one this host belongs to. */
export class WrongClusterError extends EphemeralError {
  readonly code = 'WRONG_CLUSTER';
}

/** The data folder is in use by another agent. */
export class FolderInUseError extends EphemeralError {
  readonly code = 'FOLDER_IN_USE';
}

/** The cluster would not start, join or leave within its time; the message names what it waited for. */
export class ElasticTimeoutError extends EphemeralError {
  readonly code = 'ELASTIC_TIMEOUT';
}

/** A host of that name is in the cluster already, and alive. */
export class DuplicateHostError extends EphemeralError {
  readonly code = 'DUPLICATE_HOST';
}

/** The cluster has lost its quorum, or what was asked needs what it does not have now. */
export class ClusterStateError extends EphemeralError {
  readonly code = 'CLUSTER_STATE';
}
