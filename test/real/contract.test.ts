import test from 'ava';
import { directoryContract } from '../contract/directories.ts';
import { listContract } from '../contract/lists.ts';
import { registrationContract } from '../contract/registrations.ts';
import { type EtcdProcess, startEtcd } from '../support/etcd-process.ts';
import { realWorld } from '../support/space.ts';

let etcd: EtcdProcess;
test.before(async () => {
  etcd = await startEtcd();
});
test.after.always(() => etcd?.destroy());

directoryContract(test, () => realWorld(etcd));
registrationContract(test, () => realWorld(etcd));
listContract(test, () => realWorld(etcd));
