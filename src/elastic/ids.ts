/** As etcdctl prints ids; what is no number stays as it is. */
export function toHex(id: string): string {
  return /^\d+$/.test(id) ? BigInt(id).toString(16) : id;
}
