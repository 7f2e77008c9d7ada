import { isObject } from './json.js';

/** Parts of a shard's profile that are lists; one of several searches holds those of all. */
const LISTS = ['searches', 'aggregations'] as const;

type Shard = Readonly<Record<string, unknown>> & { readonly id?: unknown };

/**
 * The profiles of the searches that one stands for as a single one: for each shard, what it did for each of them, in their order.
 *
 * @param profiles as the cluster wrote them; undefined where it gave none
 */
export function merged(profiles: readonly (string | undefined)[]): string {
  const shards = new Map<unknown, Record<string, unknown>>();
  for (const profile of profiles) {
    const given = profile === undefined ? undefined : (JSON.parse(profile) as { readonly shards?: readonly Shard[] });
    for (const shard of given?.shards ?? []) {
      const known = shards.get(shard.id);
      if (known === undefined) {
        shards.set(shard.id, { ...shard });
        continue;
      }
      for (const name of LISTS) known[name] = [known[name] ?? [], shard[name] ?? []].flat();
      // Only the search for the documents of the page reads any; the others say nothing of it, or that they read no more than ids.
      if (isObject(shard['fetch'])) known['fetch'] = shard['fetch'];
    }
  }
  return JSON.stringify({ shards: [...shards.values()] });
}
