import type { EngineReply, EngineRequest, Operation, SearchEngine } from '@sparrow-search/engine';

import { warning } from '../http/warnings.js';
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
/** Fields that are warned of. */
const MOST_WARNED = 8;
/** Bytes of the headers with these warnings: clients and proxies take only so much. */
const MOST_SAID = 2048;
/** Longest list of the asked fields that is read, and of all fields for one that may have been meant. Both are read on the event loop. */
const MOST_KNOWN = 1024 * 1024;
const MOST_OFFERED = 256 * 1024;
/** Pairs of letters that are compared to find fields which may have been meant: some milliseconds' worth. */
const MOST_COMPARED = 2_000_000;

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
  const known = async (asked: Readonly<Record<string, string>>, most: number): Promise<object | undefined> => {
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
    if (reply.body.byteLength > most) return undefined;
    const read = JSON.parse(new TextDecoder().decode(reply.body)) as FieldCaps;
    // Without an index there is nothing that a field could be missing in.
    return read.indices.length === 0 ? undefined : read.fields;
  };
  try {
    const found = await known({ fields: withParents(named).join(',') }, MOST_KNOWN);
    const unknown = found === undefined ? [] : unknownAmong(named, found).slice(0, MOST_WARNED);
    if (unknown.length === 0) return [];
    const all = Object.keys((await known({ fields: '*', filters: '-parent,-metadata' }, MOST_OFFERED)) ?? {});
    return thatFit(
      unknown.map((name) => {
        const meant = meantBy(name, all, MOST_COMPARED / unknown.length);
        const hint = meant === undefined ? '' : `; did you mean [${meant}]?`;
        return `no index that was searched has a field [${name}], so nothing is found by it${hint}`;
      }),
    );
  } catch {
    // The search has its answer: that nothing can be said about its fields is no reason to refuse it.
    return [];
  }
}

/** The field that may have been meant by a name, if it does not take more than so many pairs of letters to tell. */
function meantBy(name: string, all: readonly string[], most: number): string | undefined {
  const letters = all.reduce((sum, { length }) => sum + length, 0);
  return name.length * letters > most ? undefined : near(name, all)[0];
}

/** The first sentences, as many as there is room for in the headers. */
function thatFit(sentences: readonly string[]): readonly string[] {
  let room = MOST_SAID;
  return sentences.filter((sentence) => {
    room -= warning(sentence).length;
    return room >= 0;
  });
}

const FIELD_CAPS = { action: 'indices:data/read/field_caps' } as const;

interface FieldCaps {
  readonly indices: readonly string[];
  readonly fields?: object;
}

function namedIn({ query }: EngineRequest, body: Uint8Array | undefined): readonly string[] {
  const ofText = fieldsOfFilter(query['q'] ?? '');
  if (body === undefined) return mayHide(query) ? [] : ofText;
  if (body.byteLength > MOST_BYTES) return [];
  try {
    const read = JSON.parse(new TextDecoder().decode(body)) as object;
    // The indices of a point in time are in its id.
    return 'pit' in read || mayHide({ ...read, ...query }) ? [] : [...ofText, ...fieldsOfSearch(read)];
  } catch {
    return [];
  }
}

/** Whether a search may have found documents which its answer neither counts nor shows. */
function mayHide(search: Readonly<Record<string, unknown>>): boolean {
  if (String(search['track_total_hits']) !== 'false') return false;
  return Number(search['size'] ?? 1) === 0 || Number(search['from'] ?? 0) !== 0 || search['search_after'] !== undefined;
}
