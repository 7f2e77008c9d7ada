import { type Cancel, EngineError } from '@sparrow-search/engine';

import { type BulkItem, itemNow } from './bulk-body.js';
import { illegal, notOverCluster, refusal } from './errors.js';
import {
  type Json,
  decode,
  elements,
  isJson,
  isObject,
  kindAt,
  members,
  rawOf,
  textOf,
  valueOf,
  whole,
} from './json.js';
import { COMPANION } from './passage-mappings.js';
import { type Outcome, failureOf } from './pipelines.js';
import { type SemanticFields, type SemanticIndex, askNative } from './semantic-fields.js';

/** A document to be written, as it is written down. */
export interface Written {
  readonly source: string;
  /** What is stored of the passages of `source`, as they are now. */
  readonly payload?: string | undefined;
  /** Changes of it. */
  readonly doc?: string | undefined;
  readonly detectNoop?: boolean;
}

/** A document with its passages, one that would not change, or why it is refused. */
export type Made = { readonly kind: 'document'; readonly source: string } | { readonly kind: 'noop' } | Refused;
type Refused = Extract<Outcome, { kind: 'failed' }>;

/** Documents whose texts go to the models together. */
const BATCH = 64;

/**
 * Documents with their passages, which the native engine makes.
 *
 * @param paced whether texts wait for room in the queue of a model, instead of being refused
 */
export async function withPassages(
  semantic: SemanticFields,
  index: SemanticIndex,
  documents: readonly Written[],
  options: Making = {},
): Promise<readonly Made[]> {
  return (await madeFor(semantic, index, documents, options)).made;
}

interface Making {
  readonly paced?: boolean;
  readonly cancel?: Cancel | undefined;
}

/** Documents with their passages, and the definition of the index for which all of them were made. */
interface Batch {
  readonly made: readonly Made[];
  readonly index: SemanticIndex;
}

async function madeFor(
  semantic: SemanticFields,
  index: SemanticIndex,
  documents: readonly Written[],
  { paced = false, cancel }: Making,
): Promise<Batch> {
  const batches: (Batch | undefined)[] = Array.from({ length: Math.ceil(documents.length / BATCH) });
  let known = index;
  for (;;) {
    // While later ones were encoded, the change of a model may have begun, of which those before know nothing.
    const at = batches.findIndex((batch) => batch === undefined || !areAlike(batch.index, known));
    if (at < 0) return { made: batches.flatMap((batch) => batch?.made ?? []), index: known };
    const batch = await ofBatch(semantic, known, documents.slice(at * BATCH, (at + 1) * BATCH), paced, cancel);
    batches[at] = batch;
    known = batch.index;
  }
}

function areAlike(one: SemanticIndex, other: SemanticIndex): boolean {
  // Batches of one request mostly have the same object, and a mapping may be long.
  return one === other || JSON.stringify(one) === JSON.stringify(other);
}

/** The index as it is now, if documents that were made for it as it was have to be made again. */
async function changedSince(semantic: SemanticFields, before: SemanticIndex): Promise<SemanticIndex | undefined> {
  const now = await semantic.writtenTo(before.index);
  if (now === undefined || areAlike(now, before)) return undefined;
  // Searches are to know it as soon as writes.
  semantic.forget();
  return now;
}

async function ofBatch(
  semantic: SemanticFields,
  index: SemanticIndex,
  documents: readonly Written[],
  paced: boolean,
  cancel?: Cancel,
): Promise<Batch> {
  let known = index;
  for (;;) {
    const { made, wider } = await triedPassages(semantic, known, documents, paced, cancel);
    if (wider === undefined) {
      // While texts were encoded, the change of a model may have begun, which needs vectors of both.
      const now = await changedSince(semantic, known);
      if (now === undefined) return { made, index: known };
      known = now;
      continue;
    }
    const before = known;
    const { other, settled } = await semantic.turns.alone(before.index, async () => {
      const now = await semantic.writtenToNow(before.index);
      if (now !== undefined && !areAlike(now, before)) return { other: now };
      await semantic.settle(before, wider);
      // After the turn, the change of a model may begin, for which these documents are not made.
      return { settled: (await semantic.writtenToNow(before.index)) ?? before };
    });
    if (settled !== undefined) return { made, index: settled };
    // Another server has settled it meanwhile, perhaps with another model, which the documents are compared with then.
    semantic.forget();
    known = other;
  }
}

interface Wider {
  readonly mapping: Json;
  readonly state: unknown;
}

/** Documents with their passages, and what the first vectors of fields settle about these, which is not written down. */
export async function triedPassages(
  semantic: SemanticFields,
  { mapping, state }: SemanticIndex,
  documents: readonly Written[],
  paced: boolean,
  cancel?: Cancel,
): Promise<{ readonly made: readonly Made[]; readonly wider: Wider | undefined }> {
  // What is no object is refused by the cluster, in its own words.
  const areGood = documents.map(({ source }) => isDocument(source));
  const parts = documents
    .filter((_, at) => areGood[at])
    .map(({ source, payload, doc, detectNoop = false }) =>
      [
        `{"source":${source}`,
        ...(payload === undefined ? [] : [`"payload":${JSON.stringify(payload)}`]),
        ...(doc === undefined ? [] : [`"doc":${doc}`]),
        `"detect_noop":${String(detectNoop)}}`,
      ].join(','),
    );
  const about = JSON.stringify({ mapping, state, paced }).slice(0, -1);
  const body = `${about},"documents":[${parts.join(',')}]}`;
  const text = await askNative(semantic.native, 'make_passages', body, cancel);
  // Pieces of the text itself are sent on: numbers keep all their digits.
  const reply = new Map(members(text, whole(text).start).map((it) => [it.name, it]));
  const list = reply.get('documents');
  const spans = list === undefined ? [] : elements(text, list.start);
  let next = 0;
  const made = documents.map((document, at): Made => {
    if (areGood[at] !== true) return { kind: 'document', source: document.source };
    const one = new Map(members(text, spans[next++]?.start ?? text.length).map((it) => [it.name, rawOf(text, it)]));
    if (one.has('noop')) return { kind: 'noop' };
    const error = one.get('error');
    if (error !== undefined) return { kind: 'failed', status: Number(one.get('status')), error };
    const source = one.get('source') ?? 'null';
    return {
      kind: 'document',
      source: withCompanion(source === 'null' ? document.source : source, one.get('companion') ?? 'null'),
    };
  });
  const value = (name: string): unknown => {
    const part = reply.get(name);
    return part === undefined ? undefined : valueOf(text, part);
  };
  const widened = value('mapping');
  return { made, wider: isObject(widened) ? { mapping: widened, state: value('state') } : undefined };
}

function isDocument(source: string): boolean {
  return isJson(source) && kindAt(source, whole(source)) === 'object';
}

function withCompanion(source: string, companion: string): string {
  if (companion === 'null') return source;
  const { start, end } = whole(source);
  const inside = source.slice(start + 1, end - 1);
  const comma = inside.trim() === '' ? '' : ',';
  return `{${JSON.stringify(COMPANION)}:${companion}${comma}${inside}}`;
}

/** The body of a write, and the index for which its passages were made, if it has any. */
export interface Sent {
  readonly body: Uint8Array | undefined;
  readonly made: readonly SemanticIndex[];
}

/**
 * The body of a single write with its passages; the same bytes where the index has no `semantic_text`.
 *
 * @throws {EngineError} why the document is refused
 */
export async function sentPassages(
  semantic: SemanticFields,
  index: string,
  body: Uint8Array | undefined,
): Promise<Sent> {
  const known = body === undefined ? undefined : await semantic.writtenTo(index);
  if (body === undefined || known === undefined) return { body, made: [] };
  const batch = await madeFor(semantic, known, [{ source: decode(body) }], {});
  const [made] = batch.made;
  if (made?.kind === 'failed') throw errorOf(made);
  return { body: made?.kind === 'document' ? Buffer.from(made.source) : body, made: [batch.index] };
}

/** The refusal of one document as the answer to a request. */
export function errorOf({ status, error }: Refused): Error {
  const { type, reason, caused_by: cause } = JSON.parse(error) as { type: string; reason: string; caused_by?: unknown };
  return refusal(status, type, reason, cause);
}

/**
 * The same for the items of a bulk request, but for updates.
 *
 * @param changed lines by the positions of items, to which lines with passages are added
 * @param own answers to items that do not reach the cluster, by their positions
 * @returns positions of updates in indices with `semantic_text`, with the index that each is for; and the indices for which passages of
 * the others were made
 */
export async function bulkPassages(
  semantic: SemanticFields,
  items: readonly BulkItem[],
  changed: Map<number, string>,
  own: Map<number, string>,
  cancel?: Cancel,
): Promise<{ readonly updates: ReadonlyMap<number, SemanticIndex>; readonly made: readonly SemanticIndex[] }> {
  const updates = new Map<number, SemanticIndex>();
  const groups = new Map<string, Group>();
  // An index that is yet to be made is looked for each time.
  const written = new Map<string, SemanticIndex | undefined>();
  for (const item of items) {
    if (own.has(item.position) || item.kind === 'delete') continue;
    const now = itemNow(item, changed);
    if (!written.has(now.index)) written.set(now.index, await semantic.writtenTo(now.index));
    const known = written.get(now.index);
    if (known === undefined) continue;
    if (item.kind === 'update') {
      updates.set(item.position, known);
      continue;
    }
    const group = groups.get(now.index) ?? { known, of: [] };
    groups.set(now.index, group);
    group.of.push({ item, now });
  }
  for (let group = await unmade(semantic, groups); group !== undefined; group = await unmade(semantic, groups)) {
    const documents = group.of.map(({ now }) => ({ source: now.source }));
    try {
      const { made, index } = await madeFor(semantic, group.known, documents, { cancel });
      Object.assign(group, { made, known: index });
    } catch (error) {
      if (!(error instanceof EngineError)) throw error;
      group.made = documents.map(() => failureOf(error) as Refused);
    }
  }
  for (const { of, made = [] } of groups.values()) {
    of.forEach(({ item, now: { index, id, routing } }, at) => {
      const one = made[at];
      if (one?.kind === 'failed') own.set(item.position, item.failed(one));
      else if (one?.kind === 'document')
        changed.set(item.position, item.rewritten({ index, id, routing, source: one.source }));
    });
  }
  return { updates, made: [...groups.values()].map(({ known }) => known) };
}

/** The items of a bulk request for one index, and what was made of them for the index as it is known. */
interface Group {
  readonly of: { item: BulkItem; now: BulkItem }[];
  known: SemanticIndex;
  made?: readonly Made[];
}

/** A group that is not made yet, or whose index has changed while others were made. */
async function unmade(semantic: SemanticFields, groups: ReadonlyMap<string, Group>): Promise<Group | undefined> {
  for (const group of groups.values()) {
    if (group.made === undefined) return group;
    const known = await changedSince(semantic, group.known);
    if (known !== undefined) return Object.assign(group, { known });
  }
  return undefined;
}

/** What an update of a document asks for. */
export interface Change {
  readonly doc: string | undefined;
  readonly upsert: string | undefined;
  readonly detectNoop: boolean;
  /** The version that the document has to have. */
  readonly required: { readonly if_seq_no: unknown; readonly if_primary_term: unknown } | undefined;
  readonly retries: number;
}

const OF_UPDATE: ReadonlySet<string> = new Set([
  ...['doc', 'upsert', 'doc_as_upsert', 'detect_noop', '_source', 'if_seq_no', 'if_primary_term'],
]);

/**
 * Reads the body of an update.
 *
 * @param option what the action line, or the address, says
 * @throws {EngineError} 400
 */
export function readChange(body: string, option: (name: string) => unknown): Change {
  if (!isDocument(body)) throw refusal(400, 'x_content_parse_exception', '[1:1] [UpdateRequest] expected an object');
  const parts = new Map(members(body, whole(body).start).map((it) => [it.name, rawOf(body, it)]));
  const unknown = [...parts.keys()].find((name) => !OF_UPDATE.has(name));
  if (unknown === 'script' || unknown === 'scripted_upsert') {
    const what = 'a script in an update of a document with semantic_text fields';
    throw notOverCluster(what, 'send the changes as [doc]');
  }
  if (unknown !== undefined)
    throw refusal(400, 'x_content_parse_exception', `[UpdateRequest] unknown field [${unknown}]`);
  const [doc, upsert] = ['doc', 'upsert'].map((name) => parts.get(name));
  if (doc === undefined) throw illegal('Validation Failed: 1: script or doc is missing;');
  for (const [name, given] of Object.entries({ doc, upsert })) {
    if (given !== undefined && kindAt(given, whole(given)) !== 'object')
      throw refusal(400, 'x_content_parse_exception', `[UpdateRequest] failed to parse field [${name}]`);
  }
  if ((textOf(parts.get('_source') ?? option('_source')) ?? 'false') !== 'false')
    throw notOverCluster('[_source] of an update of a document with semantic_text fields', 'get the document');
  const given = (name: string): unknown => parts.get(name) ?? option(name);
  const asUpsert = parts.get('doc_as_upsert') === 'true';
  return {
    doc,
    upsert: asUpsert ? doc : upsert,
    detectNoop: parts.get('detect_noop') !== 'false',
    required:
      given('if_seq_no') === undefined
        ? undefined
        : { if_seq_no: given('if_seq_no'), if_primary_term: given('if_primary_term') },
    retries: Number(option('retry_on_conflict') ?? 0),
  };
}

/** A document as the cluster has it, with what is stored of its passages. */
export interface Stored {
  readonly source: string;
  readonly payload: string | undefined;
  readonly version: number;
  readonly seqNo: number;
  readonly term: number;
  readonly index: string;
}

/** The documents of an `_mget`, in its order; undefined for those that are not there. */
export function storedDocuments(answer: string, payloadField: string): readonly (Stored | undefined)[] {
  const docs = members(answer, whole(answer).start).find(({ name }) => name === 'docs');
  return (docs === undefined ? [] : elements(answer, docs.start)).map((span) => {
    const parts = new Map(members(answer, span.start).map((it) => [it.name, rawOf(answer, it)]));
    const source = parts.get('_source');
    if (parts.get('found') !== 'true' || source === undefined) return undefined;
    const fields = JSON.parse(parts.get('fields') ?? '{}') as Readonly<Record<string, unknown>>;
    const payload = fields[payloadField];
    const value = (name: string): unknown => JSON.parse(parts.get(name) ?? 'null') as unknown;
    return {
      source,
      payload: Array.isArray(payload) ? String(payload[0]) : undefined,
      version: Number(value('_version')),
      seqNo: Number(value('_seq_no')),
      term: Number(value('_primary_term')),
      index: String(value('_index')),
    };
  });
}
