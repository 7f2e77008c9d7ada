import type { EngineReply, EngineRequest, Operation, SearchEngine } from '@sparrow-search/engine';

import { fieldsOfFilter, fieldsOfSearch, unknownAmong, withParents } from '../named-fields.js';
import { near } from '../near.js';
import { rightsFor } from '../security/authorize.js';
import type { ApiKey } from '../security/key-store.js';

/** Operations that find documents by the fields which their bodies name. */
const SEARCHING: ReadonlySet<string> = new Set<Operation>(['search', 'count']);

/** How answers begin that found nothing: those of a count, and the hits of a search, which stand before everything of any length. */
const NONE_COUNTED = '{"count":0,';
const HITS = '"hits":{';
const NO_HITS = ['"total":{"value":0,', '"total":0,', '"max_score":null,"hits":[]'];
const BEGINNING = 400;

/** Longest body that is read for its fields, in bytes: this happens on the event loop, and what people write is shorter. */
const MOST_BYTES = 64 * 1024;
/** Fields that are warned of: a header has only so much room. */
const MOST_WARNED = 8;
/** Fields among which one is looked for that may have been meant. */
const MOST_COMPARED = 1000;

/** What the names of indices in a path mean. */
const OF_INDICES = ['expand_wildcards', 'allow_no_indices', 'ignore_unavailable'] as const;

/**
 * Whether a search found nothing, and may have looked in fields that no index has. Every search asks this, so bytes are compared: a call
 * of Node's for it costs more than the loop.
 */
export function foundNothing(op: Operation, { status, body }: EngineReply): boolean {
  if (status !== 200 || !SEARCHING.has(op)) return false;
  if (op === 'count') return isAt(body, 0, NONE_COUNTED);
  const end = Math.min(body.length, BEGINNING);
  for (let at = 0; at < end; at += 1) {
    if (isAt(body, at, HITS)) return NO_HITS.some((text) => isAt(body, at + HITS.length, text));
  }
  return false;
}

function isAt(body: Uint8Array, at: number, text: string): boolean {
  for (let behind = 0; behind < text.length; behind += 1) {
    if (body[at + behind] !== text.charCodeAt(behind)) return false;
  }
  return true;
}

/**
 * Sentences about fields that a search names and none of its indices has, which Elasticsearch passes over in silence. The engine is
 * asked for them with the rights of the caller, only for a search that found nothing.
 *
 * @param search the search, which was carried out
 */
export async function unknownFields(
  engine: SearchEngine,
  caller: ApiKey,
  search: EngineRequest,
  body: Uint8Array | undefined,
): Promise<readonly string[]> {
  const named = namedIn(search, body);
  if (named.length === 0) return [];
  const known = async (asked: Readonly<Record<string, string>>): Promise<object> => {
    const given = OF_INDICES.flatMap((name) => {
      const value = search.query[name];
      return value === undefined ? [] : [[name, value] as const];
    });
    const request: EngineRequest = {
      op: 'field_caps',
      path: search.path,
      query: { ...Object.fromEntries(given), ...asked },
      ...rightsFor(caller, FIELD_CAPS),
    };
    const reply = await engine.execute(request);
    const read = JSON.parse(new TextDecoder().decode(reply.body)) as FieldCaps;
    // Without an index there is nothing that a field could be missing in.
    if (read.fields === undefined || read.indices.length === 0) throw new Error('no fields can be seen');
    return read.fields;
  };
  try {
    const unknown = unknownAmong(named, await known({ fields: withParents(named).join(',') })).slice(0, MOST_WARNED);
    if (unknown.length === 0) return [];
    const all = Object.keys(await known({ fields: '*', filters: '-parent,-metadata' }));
    return unknown.map((name) => {
      const [meant] = all.length > MOST_COMPARED ? [] : near(name, all);
      const hint = meant === undefined ? '' : `; did you mean [${meant}]?`;
      return `no index that was searched has a field [${name}], so nothing is found by it${hint}`;
    });
  } catch {
    // The search has its answer: that nothing can be said about its fields is no reason to refuse it.
    return [];
  }
}

const FIELD_CAPS = { action: 'indices:data/read/field_caps' } as const;

interface FieldCaps {
  readonly indices: readonly string[];
  readonly fields?: object;
}

function namedIn({ query }: EngineRequest, body: Uint8Array | undefined): readonly string[] {
  const ofText = fieldsOfFilter(query['q'] ?? '');
  if (body === undefined || body.byteLength > MOST_BYTES) return ofText;
  try {
    const read = JSON.parse(new TextDecoder().decode(body)) as object;
    // The indices of a point in time are in its id.
    return 'pit' in read ? [] : [...ofText, ...fieldsOfSearch(read)];
  } catch {
    return ofText;
  }
}
