import type { Operation } from '../operations.js';
import type { EngineReply, EngineRequest } from '../search-engine.js';
import { fieldsOfAggregations, fieldsOfFilter, fieldsOfSearch, unknownAmong, withParents } from './named-fields.js';
import { near } from './near.js';

/** How answers begin that found nothing: those of a count, and the hits of a search, which stand before everything of any length. */
const NONE_COUNTED = '{"count":0,';
const HITS = '"hits":{';
const NO_TOTAL = '"total":{"value":0,';
const NO_HITS = [NO_TOTAL, '"total":0,', '"max_score":null,"hits":[]'];
const BEGINNING = 400;
/** What the answer to a job has near its beginning that found no document to change. */
const NONE_CHANGED = '"total":0,';
/** How answers end whose last aggregation found nothing: buckets, a metric, percentiles. */
const NO_VALUES = ['"buckets":[]}}}', ':null}}}', ':null}}}}'];
/** Longest answer of several searches that is read for which of them found nothing, and how many of these are looked at. */
const MOST_ANSWERED = 64 * 1024;
const MOST_SEARCHES = 8;

/** Longest body that is read for its fields, in bytes: this happens on the event loop, and what people write is shorter. */
const MOST_BYTES = 64 * 1024;
/** Fields that are warned of. */
const MOST_WARNED = 8;
/** Longest list of the asked fields that is read, and of all fields for one that may have been meant. Both are read on the event loop. */
const MOST_KNOWN = 1024 * 1024;
const MOST_OFFERED = 256 * 1024;
/** Pairs of letters that are compared to find fields which may have been meant: some milliseconds' worth. */
const MOST_COMPARED = 2_000_000;

/** What the names of indices in a path mean. */
const OF_INDICES = ['expand_wildcards', 'allow_no_indices', 'ignore_unavailable'] as const;

/**
 * Whether a request found nothing, and may have looked in fields that no index has. Every search asks this, so bytes are compared: a call
 * of Node's for it costs more than the loop.
 */
export function foundNothing(op: Operation, { status, body }: EngineReply): boolean {
  if (status !== 200) return false;
  if (op === 'search') return hasNoHits(body) || hasNoValues(body);
  if (op === 'count') return isAt(body, 0, NONE_COUNTED);
  if (op === 'msearch')
    return (
      body.byteLength <= MOST_ANSWERED && Buffer.from(body.buffer, body.byteOffset, body.byteLength).includes(NO_TOTAL)
    );
  return (op === 'delete_by_query' || op === 'update_by_query') && placeOf(body, NONE_CHANGED, 80) !== undefined;
}

function hasNoHits(body: Uint8Array): boolean {
  const at = placeOf(body, HITS, BEGINNING);
  return at !== undefined && NO_HITS.some((text) => isAt(body, at + HITS.length, text));
}

/** Whether the last aggregation of an answer found nothing. */
function hasNoValues(body: Uint8Array): boolean {
  return NO_VALUES.some((text) => isAt(body, body.length - text.length, text));
}

/** Where a text begins in the first bytes of an answer. */
function placeOf(body: Uint8Array, text: string, most: number): number | undefined {
  const end = Math.min(body.length, most);
  for (let at = 0; at < end; at += 1) if (isAt(body, at, text)) return at;
  return undefined;
}

function isAt(body: Uint8Array, at: number, text: string): boolean {
  for (let behind = 0; behind < text.length; behind += 1) {
    if (body[at + behind] !== text.charCodeAt(behind)) return false;
  }
  return true;
}

/**
 * Sentences about fields that a search names and none of its indices has, which Elasticsearch passes over in silence. The engine is
 * asked for them only for a request that {@link foundNothing}.
 *
 * @param fieldCaps asks the engine for fields with the rights of the caller
 * @param request what was carried out
 * @param body what it was asked for
 * @param answer what it was answered with
 */
export async function unknownFields(
  fieldCaps: (request: EngineRequest) => Promise<EngineReply>,
  request: EngineRequest,
  body: Uint8Array | undefined,
  answer: Uint8Array,
): Promise<readonly string[]> {
  // What people write is shorter, and reading it again holds the event loop.
  if (body !== undefined && body.byteLength > MOST_BYTES) return [];
  try {
    const sentences: string[] = [];
    const searches =
      request.op === 'msearch' ? emptySearches(request, body, answer) : [searchOf(request, body, answer)];
    for (const search of searches) sentences.push(...(await unknownOf(fieldCaps, search)));
    return sentences.slice(0, MOST_WARNED);
  } catch {
    // The search has its answer: that nothing can be said about its fields is no reason to refuse it.
    return [];
  }
}

/** A search whose fields are looked for. */
interface Search extends Pick<EngineRequest, 'path' | 'query'> {
  readonly fields: readonly string[];
  /** Where its answer is among those of several. */
  readonly place?: string;
}

async function unknownOf(
  fieldCaps: (request: EngineRequest) => Promise<EngineReply>,
  search: Search,
): Promise<string[]> {
  const { fields: named, path, place } = search;
  if (named.length === 0) return [];
  const known = async (asked: Readonly<Record<string, string>>, most: number): Promise<object | undefined> => {
    const given = OF_INDICES.flatMap((name) => {
      const value = search.query[name];
      return value === undefined ? [] : [[name, value] as const];
    });
    const query = { ...Object.fromEntries(given), ...asked };
    const reply = await fieldCaps({ op: 'field_caps', path, query });
    if (reply.body.byteLength > most) return undefined;
    const read = JSON.parse(new TextDecoder().decode(reply.body)) as FieldCaps;
    // Without an index there is nothing that a field could be missing in.
    return read.indices.length === 0 ? undefined : read.fields;
  };
  const found = await known({ fields: withParents(named).join(',') }, MOST_KNOWN);
  const unknown = found === undefined ? [] : unknownAmong(named, found).slice(0, MOST_WARNED);
  if (unknown.length === 0) return [];
  const all = Object.keys((await known({ fields: '*', filters: '-parent,-metadata' }, MOST_OFFERED)) ?? {});
  return unknown.map((name) => {
    const meant = meantBy(name, all, MOST_COMPARED / unknown.length);
    const hint = meant === undefined ? '' : `; did you mean [${meant}]?`;
    const where = place === undefined ? '' : `${place}: `;
    return `${where}no index that was searched has a field [${name}], so nothing is found by it${hint}`;
  });
}

/** The field that may have been meant by a name, if it does not take more than so many pairs of letters to tell. */
function meantBy(name: string, all: readonly string[], most: number): string | undefined {
  const letters = all.reduce((sum, { length }) => sum + length, 0);
  return name.length * letters > most ? undefined : near(name, all)[0];
}

interface FieldCaps {
  readonly indices: readonly string[];
  readonly fields?: object;
}

function searchOf({ path, query }: EngineRequest, body: Uint8Array | undefined, answer: Uint8Array): Search {
  const read = body === undefined ? {} : (JSON.parse(new TextDecoder().decode(body)) as object);
  // The indices of a point in time are in its id.
  if ('pit' in read) return { path, query, fields: [] };
  // What finds nothing may be one clause of several, unless all of them did.
  const isSilent = hasNoValues(answer) && !hasNoHits(answer);
  const isTold = !isSilent && !mayHide({ ...read, ...query });
  const fields = isTold ? [...fieldsOfFilter(query['q'] ?? ''), ...fieldsOfSearch(read)] : fieldsOfAggregations(read);
  return { path, query, fields };
}

/** Those of several searches that found nothing; none if their lines and answers do not stand side by side. */
function emptySearches({ path }: EngineRequest, body: Uint8Array | undefined, answer: Uint8Array): Search[] {
  const lines = new TextDecoder().decode(body).split('\n');
  const { responses } = JSON.parse(new TextDecoder().decode(answer)) as { readonly responses: readonly Part[] };
  if (lines.pop() !== '' || lines.length !== 2 * responses.length) return [];
  const empty = [...responses.entries()].filter(([, { hits }]) => hits?.total?.value === 0);
  return empty.slice(0, MOST_SEARCHES).map(([at]) => {
    const { index = path['index'], ...options } = JSON.parse(lines[2 * at] ?? '') as Header;
    const search = JSON.parse(lines[2 * at + 1] ?? '') as object;
    return {
      path: index === undefined ? {} : { index: typeof index === 'string' ? index : index.join(',') },
      query: Object.fromEntries(Object.entries(options).map(([name, value]) => [name, String(value)])),
      fields: 'pit' in search ? [] : fieldsOfSearch(search),
      place: `responses[${String(at)}]`,
    };
  });
}

/** The line before a search: what it searches, and how that is read. */
interface Header {
  readonly index?: string | readonly string[];
}

interface Part {
  readonly hits?: { readonly total?: { readonly value: number } };
}

/** Whether a search may have found documents which its answer neither counts nor shows. */
function mayHide(search: Readonly<Record<string, unknown>>): boolean {
  if (String(search['track_total_hits']) !== 'false') return false;
  return Number(search['size'] ?? 1) === 0 || Number(search['from'] ?? 0) !== 0 || search['search_after'] !== undefined;
}
