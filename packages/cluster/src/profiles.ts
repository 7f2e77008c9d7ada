import { isObject } from './json.js';

/** Parts of a shard's profile that are lists; one of several searches holds those of all. */
const LISTS = ['searches', 'aggregations'] as const;

type Shard = Readonly<Record<string, unknown>> & { readonly id?: unknown };

/** How long the parts of a fused search took, in milliseconds of the clock. */
export interface Phases {
  /** Making vectors of texts, with the time that these waited. */
  infer: number;
  /** Finding the lists, and whatever else is asked of the cluster before the documents of the page. */
  search: number;
  fuse: number;
  /** Reading the documents of the page, and those of its groups. */
  fetch: number;
  /** Picking passages; marking words is a part of reading. */
  highlight: number;
  explain: number;
}

const NANOS_OF_MS = 1e6;

/** The `profile` of a fused search: that of its searches, and how long its phases took, as the native engine names them. */
export function profileOf(profiles: readonly (string | undefined)[], phases: Phases): string {
  // A model tells how long it took for a text in all.
  const all = { tokenize: 0, queue: 0, ...phases };
  const nanos = Object.entries(all).map(([name, took]) => [`${name}_in_nanos`, Math.round(took * NANOS_OF_MS)]);
  return JSON.stringify({ shards: merged(profiles), phases: Object.fromEntries(nanos) as unknown });
}

/**
 * The profiles of the searches that one stands for as those of a single one: for each shard, what it did for each of them, in their order.
 *
 * @param profiles as the cluster wrote them; undefined where it gave none
 */
function merged(profiles: readonly (string | undefined)[]): readonly unknown[] {
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
  return [...shards.values()];
}
