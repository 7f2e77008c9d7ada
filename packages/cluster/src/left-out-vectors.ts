import type { EngineRequest } from '@sparrow-search/engine';

import { type Json, decode, isObject, isSet, parse, textOf, without } from './json.js';
import type { VectorFields } from './vector-fields.js';

/** The parameter that leaves vectors out of what is shown of documents; a cluster has patterns for it. */
const PARAMETER = '_source_exclude_vectors';
const MEMBER = 'exclude_vectors';

/** Parameters that say what is shown of documents, whatever a body says. */
const OF_SOURCE = ['_source', '_source_includes', '_source_excludes'];

/** Operations that show one document. */
const BY_ID: ReadonlySet<string> = new Set(['get_doc', 'exists_doc', 'get_source']);

/** Whether a request for documents by their ids says that vectors are to be left out, or that they are not. */
export function saysVectors({ op, query }: EngineRequest, body: Uint8Array | undefined): boolean {
  if (op === 'mget') return body !== undefined && Buffer.from(body).includes(MEMBER);
  return BY_ID.has(op) && PARAMETER in query;
}

/** Such a request in a cluster's words. */
export async function byId(
  vectors: VectorFields,
  request: EngineRequest,
  body: Uint8Array | undefined,
): Promise<readonly [EngineRequest, Uint8Array | undefined]> {
  const { index = '' } = request.path;
  if (request.op !== 'mget' || body === undefined) {
    const query = without(request.query, PARAMETER) as Record<string, string>;
    if (isSet(request.query[PARAMETER])) query['_source_excludes'] = joined(query, await vectors.paths(index));
    return [{ ...request, query }, body];
  }
  const given = parse(decode(body));
  if (!isObject(given) || !Array.isArray(given['docs'])) return [request, body];
  const docs = await Promise.all(
    (given['docs'] as unknown[]).map(async (doc) => {
      if (!isObject(doc) || !isObject(doc['_source']) || !(MEMBER in doc['_source'])) return doc;
      const of = textOf(doc['_index']) ?? index;
      const paths = doc['_source'][MEMBER] === true ? await vectors.paths(of) : [];
      return { ...doc, _source: shownSource(doc['_source'], paths) };
    }),
  );
  return [request, Buffer.from(JSON.stringify({ ...given, docs }))];
}

/** The parameters and the body of a search, in a cluster's words. */
export async function ofSearch(
  vectors: VectorFields,
  expression: string,
  request: EngineRequest,
  text: string | undefined,
): Promise<{ readonly query: Readonly<Record<string, string>>; readonly text: string | undefined }> {
  const isNamed = PARAMETER in request.query;
  if (!isNamed && text?.includes(MEMBER) !== true) return { query: request.query, text };
  const query = without(request.query, PARAMETER) as Record<string, string>;
  const given = parse(text ?? '{}');
  const source = isObject(given) ? given['_source'] : undefined;
  const leaves = isNamed ? isSet(request.query[PARAMETER]) : isObject(source) && source[MEMBER] === true;
  const paths = leaves ? await vectors.paths(expression) : [];
  if (!isObject(given)) return { query, text };
  if (OF_SOURCE.some((name) => name in query)) {
    if (paths.length > 0) query['_source_excludes'] = joined(query, paths);
    return { query, text };
  }
  const shown = shownSource(source, paths);
  return { query, text: shown === undefined ? text : JSON.stringify({ ...given, _source: shown }) };
}

function joined(query: Readonly<Record<string, string>>, paths: readonly string[]): string {
  return [query['_source_excludes'] ?? [], paths].flat().join(',');
}

/** What is to be shown of a document, without the fields at some paths; undefined where nothing was said and nothing is left out. */
function shownSource(given: unknown, paths: readonly string[]): unknown {
  if (isObject(given)) {
    const { excludes, exclude, ...rest } = without(given, MEMBER) as Json;
    const all = [excludes ?? [], exclude ?? [], paths].flat();
    return { ...rest, ...(all.length === 0 ? {} : { excludes: all }) };
  }
  if (given === false || paths.length === 0) return given;
  return { ...(given === undefined || given === true ? {} : { includes: [given].flat() }), excludes: paths };
}
