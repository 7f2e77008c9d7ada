import type { EngineReply, EngineRequest } from '@sparrow-search/engine';

import { itemsIn } from './bulk-body.js';
import {
  type Json,
  decode,
  elements,
  isObject,
  malformedAnswer,
  members,
  oneLine,
  rawOf,
  valueOf,
  whole,
} from './json.js';
import { PAYLOAD } from './passage-mappings.js';
import { passedOn } from './replies.js';
import { storedDocuments, withPassages } from './semantic-documents.js';
import type { SemanticFields } from './semantic-fields.js';
import type { Transport } from './transport.js';
import { type VectorFields, sentVectors } from './vector-documents.js';

interface Context {
  readonly transport: Transport;
  readonly vectors: VectorFields;
  readonly semantic: SemanticFields;
}

/** Answers what reads the stored passages of documents, which move to another engine with them. */
export async function storedPassages(
  { transport }: Context,
  { path: { index = '' } }: EngineRequest,
  bytes: Uint8Array | undefined,
): Promise<EngineReply> {
  const docs = documentsIn(bytes).map(({ value }) => {
    const { id, routing } = value;
    return { _id: id, ...(routing === undefined ? {} : { routing }), stored_fields: [PAYLOAD], _source: true };
  });
  if (docs.length === 0) return replyWith({ payloads: [] });
  const body = JSON.stringify({ docs });
  const path = `/${encodeURIComponent(index)}/_mget`;
  const read = await transport.ask({ method: 'POST', path, body, repeatable: true });
  if (read.status !== 200) throw passedOn(read);
  const payloads = storedDocuments(read.body.toString(), PAYLOAD).map((document) => document?.payload ?? null);
  return replyWith({ payloads });
}

/** Answers what writes documents with passages that were made before. */
export async function writePassages(
  { transport, semantic, vectors }: Context,
  { path: { index = '' } }: EngineRequest,
  bytes: Uint8Array | undefined,
): Promise<EngineReply> {
  const known = await semantic.writtenTo(index);
  if (known === undefined) throw new Error(`[${index}] has no passages`);
  const documents = documentsIn(bytes);
  const sources = await Promise.all(
    documents.map(async ({ source }) =>
      decode((await sentVectors(vectors, index, Buffer.from(source))) ?? Buffer.of()),
    ),
  );
  const written = documents.map(({ value: { payload } }, at) => ({
    source: sources[at] ?? '{}',
    payload: typeof payload === 'string' ? payload : undefined,
  }));
  const made = await withPassages(semantic, known, written, { paced: true });
  const items: unknown[] = [];
  const lines: string[] = [];
  const places: number[] = [];
  for (const [at, one] of made.entries()) {
    const { id, routing } = documents[at]?.value ?? {};
    if (one.kind === 'failed') items[at] = { status: one.status, error: JSON.parse(one.error) as unknown };
    if (one.kind !== 'document') continue;
    const action = { _id: id, ...(routing === undefined ? {} : { routing }) };
    lines.push(`${JSON.stringify({ index: action })}\n${oneLine(one.source)}\n`);
    places.push(at);
  }
  if (lines.length === 0) return replyWith({ items });
  const answered = await transport.ask({
    method: 'POST',
    path: `/${encodeURIComponent(index)}/_bulk`,
    query: { pipeline: '_none' },
    body: lines.join(''),
    ndjson: true,
    // The documents have ids, so sending them twice writes them once.
    repeatable: true,
  });
  if (answered.status !== 200) throw passedOn(answered);
  const found = itemsIn(answered.body.toString());
  if (found.length !== lines.length) throw malformedAnswer();
  places.forEach((at, place) => {
    const [item] = Object.values(JSON.parse(found[place] ?? '{}') as Json);
    items[at] = item;
  });
  return replyWith({ items });
}

/** The documents that a body names, and the source of each as it is written: numbers keep all their digits. */
function documentsIn(bytes: Uint8Array | undefined): readonly { readonly value: Json; readonly source: string }[] {
  const text = decode(bytes ?? Buffer.from('{}'));
  const list = members(text, whole(text).start).find(({ name }) => name === 'documents');
  return (list === undefined ? [] : elements(text, list.start)).map((span) => {
    const value = valueOf(text, span);
    const source = members(text, span.start).find(({ name }) => name === 'source');
    return { value: isObject(value) ? value : {}, source: source === undefined ? '{}' : rawOf(text, source) };
  });
}

function replyWith(body: object): EngineReply {
  return { status: 200, body: Buffer.from(JSON.stringify(body)) };
}
