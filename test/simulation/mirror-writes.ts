import type { CallOptions, Store, Txn, TxnResult } from '../../src/core/store.ts';
import { storeKey } from './store-keys.ts';
import { PassingStore } from './stores.ts';
import type { World } from './world.ts';

/** One transaction is under way for each mirror that a process is master of (M2). */
export class MirrorWrites extends PassingStore {
  readonly #world: World;
  readonly #underWay = new Set<string>();

  constructor(inner: Store, world: World) {
    super(inner);
    this.#world = world;
  }

  override txn(txn: Txn, options: CallOptions): Promise<TxnResult> {
    const written = txn.success.map((op) => (op.type === 'put' ? storeKey(this.#world.namespace, op.key) : undefined));
    const at = written.find((key) => key?.kind === 'marker' || key?.kind === 'shadow');
    if (!at || !('mirror' in at)) return this.inner.txn(txn, options);
    const lock = txn.compares.map(({ operand }) => operand)[0];
    const id = `${at.mirror} ${lock}`;
    if (this.#underWay.has(id)) this.#world.oracle.fail('M2', `two transactions at once to the mirror ${at.mirror}`);
    this.#underWay.add(id);
    return this.inner.txn(txn, options).finally(() => this.#underWay.delete(id));
  }
}
