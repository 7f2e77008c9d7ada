import { type Cancel, EngineError, type EngineReply, type EngineRequest } from '@sparrow-search/engine';

import { BulkItem, itemNow, itemsIn } from './bulk-body.js';
import type { ClusterLog } from './cluster-engine.js';
import { type Cause, refusal } from './errors.js';
import { malformedAnswer, members, oneLine, rawOf } from './json.js';
import { PAYLOAD, slotsOf } from './passage-mappings.js';
import { type Outcome, failureOf } from './pipelines.js';
import { passedOn } from './replies.js';
import {
  type Change,
  type Made,
  type Stored,
  readChange,
  storedDocuments,
  withPassages,
} from './semantic-documents.js';
import type { SemanticFields, SemanticIndex } from './semantic-fields.js';
import type { Transport } from './transport.js';

/** What updates need of their surroundings. */
export interface Updating {
  readonly transport: Transport;
  readonly semantic: SemanticFields;
  /** Told what becomes of no answer; nobody is without one. */
  readonly log?: Pick<ClusterLog, 'warn'> | undefined;
}

/** An update on its way. */
interface Underway {
  readonly item: BulkItem;
  readonly index: SemanticIndex;
  readonly change: Change;
}

/**
 * Updates documents of indices with `semantic_text`: each is read, changed, and written back with its passages if nobody else wrote it in
 * between; if somebody did, it is tried again as often as its request says.
 *
 * @param items of different documents
 * @param query parameters of the bulk request
 * @returns the answer to each item
 */
export async function updateDocuments(
  context: Updating,
  items: readonly { readonly item: BulkItem; readonly index: SemanticIndex }[],
  query: Readonly<Record<string, string>>,
  cancel?: Cancel,
): Promise<readonly string[]> {
  const since = performance.now();
  const answers = new Map<BulkItem, string>();
  let left: readonly Underway[] = items.flatMap(({ item, index }) => {
    try {
      return [{ item, index, change: readChange(item.source, (name) => item.option(name) ?? query[name]) }];
    } catch (error) {
      answers.set(item, item.failed(failureOf(error)));
      return [];
    }
  });
  for (let attempt = 0; left.length > 0; attempt += 1) {
    const again: Underway[] = [];
    for (const [one, answer] of await tried(context, left, query, cancel)) {
      answers.set(one.item, answer);
      const mayRetry = one.change.required === undefined && attempt < one.change.retries;
      if (mayRetry && /"status":409[,}]/u.test(answer)) again.push(one);
    }
    left = again;
  }
  const all = items.map(({ item }) => answers.get(item) ?? '{}');
  const made = [...new Map(items.map(({ index }) => [index.index, index])).values()];
  if (performance.now() - since >= SEEN_MS)
    await complete(
      context,
      made,
      since,
      placesIn(
        all,
        items.map(({ item }) => item.routing),
      ),
    );
  return all;
}

/** A document that the cluster has written. */
export interface Place {
  readonly index: string;
  readonly id: string;
  readonly routing: string | undefined;
}

/**
 * Milliseconds that a write may take and still be seen by the task that fills an index with new vectors, because that task first counts
 * documents after all servers have stopped believing an older mapping.
 */
const SEEN_MS = 500;

/**
 * Gives documents the vectors of a new model, where the change of a field to that model began while they were being written. The task that
 * fills the index looks for documents without such vectors, and cannot see those that arrive after it has looked.
 *
 * @param made the indices as they were known when the passages were made
 * @param since when that began
 */
export async function complete(
  context: Updating,
  made: readonly SemanticIndex[],
  since: number,
  written: readonly Place[],
): Promise<void> {
  if (performance.now() - since < SEEN_MS) return;
  for (const before of made) {
    try {
      const now = await context.semantic.writtenToNow(before.index);
      const have = new Set(allSlots(before));
      if (now === undefined || allSlots(now).every((slot) => have.has(slot))) continue;
      context.semantic.forget();
      const lacking = written.filter(({ index }) => index === before.index);
      const items = lacking.map((place) => ({ item: again(place), index: now }));
      if (items.length > 0) tellRefused(context, before.index, await updateDocuments(context, items, {}));
    } catch (error) {
      // The documents are written, whatever becomes of vectors that no search reads yet.
      const reason = error instanceof EngineError ? error.reason : String(error);
      context.log?.warn(LACKING, { index: before.index, error: reason });
    }
  }
}

const LACKING = 'documents that were just written lack the vectors of a new model';

/** Tells of documents that were refused: one that is gone, or that somebody else wrote in between, is not concerned any more. */
function tellRefused({ log }: Updating, index: string, answers: readonly string[]): void {
  const refused = answers.flatMap((answer) => {
    const [found] = Object.values(JSON.parse(answer) as Readonly<Record<string, Answer>>);
    return found === undefined || found.status < 300 || [404, 409].includes(found.status) ? [] : [found];
  });
  const [first] = refused;
  if (first === undefined) return;
  log?.warn(LACKING, { index, documents: refused.length, first: first._id, error: first.error?.reason });
}

/** An update that changes nothing. */
function again({ index, id, routing }: Place): BulkItem {
  const value = { _id: id, ...(routing === undefined ? {} : { routing }) };
  return new BulkItem(0, 'update', '', { value, members: [] }, Buffer.from('{"doc":{},"detect_noop":false}'), index);
}

function allSlots({ fields, state }: SemanticIndex): readonly string[] {
  return Object.entries(fields).flatMap(([path, definition]) =>
    slotsOf(path, definition, state).map(({ name }) => name),
  );
}

/** The documents that a bulk request has written, by the answers to its items. */
export function placesIn(answers: readonly string[], routings: readonly (string | undefined)[]): readonly Place[] {
  return answers.flatMap((answer, at) => {
    const [found] = Object.values(JSON.parse(answer) as Readonly<Record<string, Answer>>);
    if (found === undefined || found.status >= 300) return [];
    return [{ index: found._index, id: found._id, routing: routings[at] }];
  });
}

interface Answer {
  readonly _index: string;
  readonly _id: string;
  readonly status: number;
  readonly error?: Cause;
}

/** Answers an update of one document, whose passages have to stay true. */
export async function updateDocument(
  context: Updating,
  { path: { index = '', id }, query }: EngineRequest,
  known: SemanticIndex,
  body: Uint8Array,
): Promise<EngineReply> {
  const { routing } = query;
  const value = { _id: id, ...(routing === undefined ? {} : { routing }) };
  const item = new BulkItem(0, 'update', '', { value, members: [] }, Buffer.from(body), index);
  const [answer = '{}'] = await updateDocuments(context, [{ item, index: known }], query);
  const { status, error, ...rest } = (JSON.parse(answer) as { update: { status: number; error?: Cause } }).update;
  if (error !== undefined) throw refusal(status, error.type, error.reason);
  return { status, body: Buffer.from(JSON.stringify(rest)) };
}

/** A bulk request some of whose updates are for indices with `semantic_text`. */
interface WithUpdates {
  readonly path: string;
  readonly query: Readonly<Record<string, string>>;
  readonly items: readonly BulkItem[];
  readonly changed: ReadonlyMap<number, string>;
  /** Answers by positions; all others are added. */
  readonly own: Map<number, string>;
  readonly updates: ReadonlyMap<number, SemanticIndex>;
}

/**
 * Carries out a bulk request whose updates read their documents before: what is written to a document comes in its order, and all else
 * together.
 */
export async function inOrder(
  context: Updating,
  { path, query, items, changed, own, updates }: WithUpdates,
  signal: AbortSignal,
  cancel?: Cancel,
): Promise<void> {
  const left = items.filter(({ position }) => !own.has(position));
  for (const part of apart(left, updates)) {
    const plain = part.filter(({ position }) => !updates.has(position));
    if (plain.length > 0) {
      const sent = plain.map((item) => changed.get(item.position) ?? item.written()).join('');
      const answered = await context.transport.ask({ method: 'POST', path, query, body: sent, ndjson: true, signal });
      if (answered.status !== 200) throw passedOn(answered);
      const found = itemsIn(answered.body.toString());
      if (found.length !== plain.length) throw malformedAnswer();
      plain.forEach(({ position }, at) => own.set(position, found[at] ?? '{}'));
    }
    const those = part.flatMap((item) => {
      const index = updates.get(item.position);
      return index === undefined ? [] : [{ item: itemNow(item, changed), index }];
    });
    const answers = await updateDocuments(context, those, query, cancel);
    those.forEach(({ item: { position } }, at) => own.set(position, answers[at] ?? '{}'));
  }
}

/** Parts of a bulk request, in none of which a document is written twice if one of the writes is an update that reads it. */
function apart(items: readonly BulkItem[], updates: ReadonlyMap<number, unknown>): readonly (readonly BulkItem[])[] {
  const parts: BulkItem[][] = [[]];
  let seen = new Map<string, boolean>();
  for (const item of items) {
    const key = JSON.stringify([item.index, item.id]);
    const isUpdate = updates.has(item.position);
    const before = item.id === undefined ? undefined : seen.get(key);
    if (before !== undefined && (before || isUpdate)) {
      parts.push([]);
      seen = new Map();
    }
    seen.set(key, isUpdate || before === true);
    parts.at(-1)?.push(item);
  }
  return parts;
}

async function tried(
  { transport, semantic }: Updating,
  all: readonly Underway[],
  query: Readonly<Record<string, string>>,
  cancel?: Cancel,
): Promise<ReadonlyMap<Underway, string>> {
  const docs = all.map(({ item: { index, id, routing } }) => ({
    _index: index,
    _id: id,
    ...(routing === undefined ? {} : { routing }),
    _source: true,
    stored_fields: [PAYLOAD],
  }));
  const read = await transport.ask({
    method: 'POST',
    path: '/_mget',
    body: JSON.stringify({ docs }),
    repeatable: true,
  });
  if (read.status !== 200) throw passedOn(read);
  const stored = storedDocuments(read.body.toString(), PAYLOAD);
  const answers = new Map<Underway, string>();
  const lines: { readonly of: Underway; readonly text: string; readonly source: string }[] = [];
  for (const [one, made] of await changed(semantic, all, stored, cancel)) {
    const { item } = one;
    const before = stored[all.indexOf(one)];
    if (made.kind === 'failed') answers.set(one, item.failed(made));
    else if (made.kind === 'noop') answers.set(one, noop(one, before));
    else lines.push({ of: one, text: lineOf(one, before, made.source), source: made.source });
  }
  if (lines.length === 0) return answers;
  const written = await transport.ask({
    method: 'POST',
    path: '/_bulk',
    query: { ...ofBulk(query), pipeline: '_none' },
    body: lines.map(({ text }) => text).join(''),
    ndjson: true,
  });
  if (written.status !== 200) throw passedOn(written);
  const text = written.body.toString();
  const found = itemsIn(text);
  // A write that the cluster answered nothing about cannot be acknowledged.
  if (found.length !== lines.length) throw malformedAnswer();
  lines.forEach(({ of }, at) => {
    const item = found[at] ?? '';
    const [member] = members(item, 0);
    if (member === undefined) throw malformedAnswer();
    answers.set(of, `{"update":${rawOf(item, member)}}`);
  });
  return answers;
}

/** What becomes of each document, those of one index together. */
async function changed(
  semantic: SemanticFields,
  all: readonly Underway[],
  stored: readonly (Stored | undefined)[],
  cancel?: Cancel,
): Promise<ReadonlyMap<Underway, Made>> {
  const made = new Map<Underway, Made>();
  const groups = new Map<string, Underway[]>();
  all.forEach((one, at) => {
    const { item, change } = one;
    if (stored[at] === undefined && (change.upsert === undefined || change.required !== undefined)) {
      made.set(one, missing(item));
      return;
    }
    groups.set(one.index.index, [...(groups.get(one.index.index) ?? []), one]);
  });
  for (const group of groups.values()) {
    const [first] = group;
    if (first === undefined) continue;
    const documents = group.map((one) => {
      const before = stored[all.indexOf(one)];
      if (before === undefined) return { source: one.change.upsert ?? '{}' };
      const { source, payload, seqNo } = before;
      const { doc, required } = one.change;
      // A version that is asked for and is not there any more is a conflict, whatever would change.
      const isStale = required !== undefined && Number(required.if_seq_no) !== seqNo;
      return { source, payload, doc, detectNoop: one.change.detectNoop && !isStale };
    });
    const results = await withPassages(semantic, first.index, documents, { cancel });
    group.forEach((one, at) => made.set(one, results[at] ?? { kind: 'noop' }));
  }
  return made;
}

function lineOf({ item, change }: Underway, before: Stored | undefined, source: string): string {
  const { index: _index, id: _id, routing } = item;
  const conditions = change.required ?? { if_seq_no: before?.seqNo, if_primary_term: before?.term };
  const action = { _index, _id, ...(routing === undefined ? {} : { routing }) };
  const line = before === undefined ? { create: action } : { index: { ...action, ...numbers(conditions) } };
  return `${JSON.stringify(line)}\n${oneLine(source)}\n`;
}

function numbers(conditions: object): object {
  return Object.fromEntries(Object.entries(conditions).map(([name, value]) => [name, Number(value)]));
}

function missing({ id = '', index }: BulkItem): Extract<Outcome, { kind: 'failed' }> {
  const error = { type: 'document_missing_exception', reason: `[${id}]: document missing`, shard: '0', index };
  return { kind: 'failed', status: 404, error: JSON.stringify(error) };
}

function noop({ item }: Underway, before: Stored | undefined): string {
  const answer = {
    _index: before?.index ?? item.index,
    _id: item.id,
    _version: before?.version,
    result: 'noop',
    _shards: { total: 0, successful: 0, failed: 0 },
    _seq_no: before?.seqNo,
    _primary_term: before?.term,
    status: 200,
  };
  return JSON.stringify({ update: answer });
}

/** Parameters of an update that a bulk request has as well. */
function ofBulk(query: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  const known = ['refresh', 'timeout', 'wait_for_active_shards', 'require_alias'];
  return Object.fromEntries(Object.entries(query).filter(([name]) => known.includes(name)));
}
