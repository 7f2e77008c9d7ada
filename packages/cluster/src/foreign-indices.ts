import { notOverCluster } from './errors.js';
import { decode, isObject, parseRequest } from './json.js';
import type { Asker, Names } from './names.js';

/** Clauses, and parts of clauses, whose own text is read as a query by the cluster, or that read what no name stands for. */
const HIDDEN = ['wrapper', 'percolate', 'template', 'collate'];

/** What a body has to hold for it to name an index: a name may be written with escapes. */
const NAMES_INDEX = /"(?:_index|index|target_index|wrapper|collate)"|\\u/;

const FOR_RESTRICTED = 'for a key that may use some indices only';

/** Whether a body may name indices whose documents it reads; most do not, and need not be looked through. */
export function mayNameIndices(text: string): boolean {
  return NAMES_INDEX.test(text);
}

/**
 * The indices whose documents the clauses of a body read, besides those that the address names: values of `terms`, examples of
 * `more_like_this`. They are looked for everywhere: sorts and aggregations hold queries in more places than are translated.
 *
 * @param restricted whether the caller may use some indices only: then each has to be told for certain
 * @throws {EngineError} 400 for clauses whose indices cannot be told
 */
export function foreignIndices(body: unknown, restricted: boolean): ReadonlySet<string> {
  const found = new Set<string>();
  if (restricted) {
    const hidden = HIDDEN.find((clause) => holds(body, clause));
    if (hidden !== undefined) throw notOverCluster(`query [${hidden}], ${FOR_RESTRICTED},`);
    gather(body, found);
  } else {
    gatherAll(body, found);
  }
  return found;
}

/**
 * Checks a body that is sent on as it is, of a key that may use all indices: it may name none of Sparrow's own. What a restricted key may
 * send is decided where it is sent.
 */
export async function checkForeign(names: Names, asker: Asker, bytes: Uint8Array | undefined): Promise<void> {
  if (asker.rights !== undefined || bytes === undefined || bytes.length === 0) return;
  const text = decode(bytes);
  if (mayNameIndices(text)) await names.check(asker, [...foreignIndices(parseRequest(text), false)]);
}

/** Whether there is an object by that name anywhere. */
function holds(value: unknown, name: string): boolean {
  if (Array.isArray(value)) return value.some((one) => holds(one, name));
  return isObject(value) && (isObject(value[name]) || Object.values(value).some((one) => holds(one, name)));
}

/** Whether an object that names an index also says which document of it. */
function isDocument(value: Readonly<Record<string, unknown>>): boolean {
  return ['id', '_id', 'path', 'query', 'doc'].some((key) => key in value);
}

/** Gathers the indices of documents that clauses name by their ids; a clause that finds them otherwise is refused. */
function gather(value: unknown, found: Set<string>): void {
  if (Array.isArray(value)) {
    for (const one of value) gather(one, found);
    return;
  }
  if (!isObject(value)) return;
  const unclear = 'indexed_shape' in value || 'target_index' in value;
  const given = [value['index'], value['_index']].filter((it) => it !== undefined);
  if (unclear || (given.length > 0 && isDocument(value))) {
    const isRead = ('id' in value || '_id' in value) && !('query' in value);
    if (unclear || !isRead || !given.every((it) => typeof it === 'string')) {
      throw notOverCluster(`a clause that names an index, ${FOR_RESTRICTED},`);
    }
    for (const index of given) found.add(index);
  }
  // The cluster does not look at the filter of an alias for it, and shows whole documents.
  if (isObject(value['completion']) && typeof value['completion']['field'] === 'string') {
    throw notOverCluster(`suggester [completion], ${FOR_RESTRICTED},`);
  }
  // Nor for the background that values are compared with, whose counts would tell of hidden documents.
  for (const kind of ['significant_terms', 'significant_text']) {
    const asked = value[kind];
    // An aggregation or a field may have this name, too.
    if (isObject(asked) && 'field' in asked) throw notOverCluster(`aggregation [${kind}], ${FOR_RESTRICTED},`);
  }
  // Nor for values without a document in a bucket, among which would be those that only hidden documents have.
  const terms = value['terms'];
  if (isObject(terms) && typeof terms['field'] === 'string' && Number(terms['min_doc_count'] ?? 1) === 0) {
    throw notOverCluster(`[min_doc_count] 0 of the aggregation [terms], ${FOR_RESTRICTED},`);
  }
  for (const one of Object.values(value)) gather(one, found);
}

/**
 * Gathers what a key for all indices names: it may read any index but Sparrow's own, so that whatever is no name need not be told from
 * one.
 */
function gatherAll(value: unknown, found: Set<string>): void {
  if (Array.isArray(value)) {
    for (const one of value) gatherAll(one, found);
    return;
  }
  if (!isObject(value)) return;
  const given = isDocument(value) ? [value['index'], value['_index']] : [];
  for (const index of [...given, value['target_index']]) if (typeof index === 'string') found.add(index);
  for (const [name, one] of Object.entries(value)) {
    // The query of a suggester is a template, of which the cluster makes a text.
    if (name === 'collate' && isObject(one) && isObject(one['query'])) throw notOverCluster('[collate] of a suggester');
    gatherAll(name === 'wrapper' && isObject(one) ? unwrapped(one['query']) : one, found);
  }
}

/** The query in a `wrapper`, which is there in base64. */
function unwrapped(query: unknown): unknown {
  try {
    return JSON.parse(Buffer.from(String(query), 'base64').toString());
  } catch {
    throw notOverCluster('a query [wrapper] that holds no JSON');
  }
}
