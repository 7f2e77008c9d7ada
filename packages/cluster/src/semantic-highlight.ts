import type { Cancel, EngineReply } from '@sparrow-search/engine';

import { notOverCluster } from './errors.js';
import { hitSpans } from './hits.js';
import { type Edit, type Json, type Member, edited, isObject, members, rawOf, valueOf } from './json.js';
import { PAYLOAD } from './passage-mappings.js';
import { passedOn } from './replies.js';
import { storedDocuments } from './semantic-documents.js';
import { type SemanticFields, type SemanticIndices, askNative } from './semantic-fields.js';
import { type SemanticAsk, hasSemantic } from './semantic-queries.js';
import type { Transport } from './transport.js';

/** The `highlight` section of a search in indices with `semantic_text`. */
export interface Highlighting {
  /** The names of the other fields, as the section has them: what the cluster is to show. */
  readonly rest: readonly string[];
  /** The section for their passages; undefined where none are to be shown. */
  readonly passages: Json | undefined;
}

/**
 * Takes apart which fields of a `highlight` section are `semantic_text`.
 *
 * @throws {EngineError} 400 for passages by another query than that of the search
 */
export function highlighting(known: SemanticIndices, section: Json): Highlighting {
  const given = section['fields'];
  const fields = (Array.isArray(given) ? given : [given]).flatMap((it) => (isObject(it) ? Object.entries(it) : []));
  const isOf = (name: string): boolean => hasSemantic(known, name);
  const ofPassages = fields.filter(([name]) => isOf(name) || name.includes('*'));
  const rest = fields.filter(([name, options]) => !isOf(name) && typeOf(options, section) !== 'semantic');
  const ofQuery = [section, ...ofPassages.map(([, options]) => options)];
  if (ofPassages.length > 0 && ofQuery.some((it) => isObject(it) && 'highlight_query' in it)) {
    throw notOverCluster('[highlight_query] for passages of semantic_text fields');
  }
  const sectionOf = (some: typeof fields): Json => ({
    ...section,
    fields: some.map(([name, it]) => ({ [name]: it })),
  });
  return {
    rest: rest.map(([name]) => name),
    passages: ofPassages.length === 0 ? undefined : sectionOf(ofPassages),
  };
}

function typeOf(options: unknown, section: Json): unknown {
  return (isObject(options) ? options['type'] : undefined) ?? section['type'];
}

/**
 * Adds the best passages to the hits of an answer, which the native engine picks among those that are stored with each document.
 *
 * @param highlight the section, for the fields with passages
 */
export async function withBestPassages(
  { transport, semantic }: { readonly transport: Transport; readonly semantic: SemanticFields },
  known: SemanticIndices,
  clauses: readonly Pick<SemanticAsk, 'query' | 'part' | 'hits'>[],
  highlight: Json,
  reply: EngineReply,
  cancel?: Cancel,
): Promise<EngineReply> {
  const text = Buffer.from(reply.body).toString();
  const hits = reply.status === 200 ? hitsIn(text) : [];
  if (hits.length === 0) return reply;
  const docs = hits.map((hit) => {
    const routing = hit.value('_routing');
    return {
      ...{ _index: hit.value('_index'), _id: hit.value('_id'), _source: true, stored_fields: [PAYLOAD] },
      ...(routing === undefined ? {} : { routing }),
    };
  });
  const read = await transport.ask({
    method: 'POST',
    path: '/_mget',
    body: JSON.stringify({ docs }),
    repeatable: true,
  });
  if (read.status !== 200) throw passedOn(read);
  const stored = storedDocuments(read.body.toString(), PAYLOAD);
  const found = hits.map((hit, at) => {
    const index = known.indices.findIndex(({ index: name }) => name === hit.value('_index'));
    const payload = stored[at]?.payload;
    // A document that was deleted meanwhile has nothing to show.
    return `{"index":${String(index < 0 ? known.indices.length : index)},"source":${stored[at]?.source ?? '{}'},"payload":${JSON.stringify(payload ?? null)}}`;
  });
  const about = JSON.stringify({ indices: known.indices, clauses, highlight }).slice(0, -1);
  const body = `${about},"hits":[${found.join(',')}]}`;
  const answer = JSON.parse(await askNative(semantic.native, 'best_passages', body, cancel)) as {
    readonly hits: readonly Readonly<Record<string, readonly string[]>>[];
  };
  const edits = hits.flatMap((hit, at): Edit[] => {
    const texts = answer.hits[at] ?? {};
    if (Object.keys(texts).length === 0) return [];
    const own = hit.member('highlight');
    if (own === undefined) {
      return [{ start: hit.end - 1, end: hit.end - 1, text: `,"highlight":${JSON.stringify(texts)}` }];
    }
    const merged = { ...(valueOf(text, own) as Json), ...texts };
    return [{ start: own.start, end: own.end, text: JSON.stringify(merged) }];
  });
  return edits.length === 0 ? reply : { ...reply, body: Buffer.from(edited(text, edits)) };
}

interface Hit {
  readonly end: number;
  readonly member: (name: string) => Member | undefined;
  readonly value: (name: string) => unknown;
}

function hitsIn(text: string): readonly Hit[] {
  return hitSpans(text).map(({ start, end }) => {
    const parts = members(text, start);
    const member = (name: string): Member | undefined => parts.find((it) => it.name === name);
    return {
      end,
      member,
      value: (name) => {
        const part = member(name);
        return part === undefined ? undefined : (JSON.parse(rawOf(text, part)) as unknown);
      },
    };
  });
}
