import { setTimeout as sleep } from 'node:timers/promises';

import { EngineError, type SearchEngine } from '@sparrow-search/engine';

import { type SourceHit, sourceHits } from '../hits.js';
import { isObject } from '../json.js';
import { MigrationError, ask, askText } from './asking.js';
import { type Mark, writeMark } from './mark.js';

/** How often the mark is set down, and how often documents are sent again that the other side had no room for. */
const MARK_MS = 2000;
const RETRIES = 10;
const FIRST_RETRY_MS = 200;

/** What moves the documents of an index. */
export interface Transfer {
  readonly from: SearchEngine;
  readonly to: SearchEngine;
  readonly index: string;
  /** Whether documents have passages, which move with them. */
  readonly hasPassages: boolean;
  readonly batch: number;
  readonly signal: AbortSignal;
  readonly onDocuments: (documents: number) => void;
}

/** The numbers of an index's shards. */
export async function shardNumbers(engine: SearchEngine, index: string): Promise<readonly number[]> {
  const { shards } = await ask<{ shards: { shard: number }[][] }>(engine, 'search_shards', { path: { index } });
  return shards.flatMap(([first]) => (first === undefined ? [] : [first.shard])).sort((a, b) => a - b);
}

/**
 * Moves the documents of an index that are not moved yet, shard by shard in the order of their sequence numbers, so that it can be
 * gone on with behind the last one that was set down. What is sent twice is written once, for its id is the same.
 */
export async function transfer(moving: Transfer, begun: Mark): Promise<Mark> {
  const { from, to, index, hasPassages, batch, signal, onDocuments } = moving;
  const shards = await shardNumbers(from, index);
  let mark = begun;
  let saved = performance.now();
  for (const shard of shards) {
    for (;;) {
      if (signal.aborted) {
        await writeMark(to, index, mark);
        return mark;
      }
      const page = await readPage(from, index, shard, shards.length, mark.after[shard], batch);
      const last = page.at(-1);
      if (last !== undefined) {
        const payloads = hasPassages ? await passagesOf(from, index, page) : undefined;
        await writePage(to, index, page, payloads);
        const after = { ...mark.after, [String(shard)]: last.seqNo };
        mark = { ...mark, documents: mark.documents + page.length, after };
        onDocuments(mark.documents);
      }
      if (page.length < batch) break;
      if (performance.now() - saved < MARK_MS) continue;
      saved = performance.now();
      await writeMark(to, index, mark);
    }
  }
  mark = { ...mark, done: true };
  await writeMark(to, index, mark);
  return mark;
}

/** Documents of a shard behind a sequence number. */
export async function readPage(
  engine: SearchEngine,
  index: string,
  shard: number,
  shards: number,
  after: number | undefined,
  size: number,
): Promise<readonly SourceHit[]> {
  const text = await askText(engine, 'search', {
    path: { index },
    query: shards === 1 ? {} : { preference: `_shards:${String(shard)}` },
    body: {
      size,
      sort: [{ _seq_no: 'asc' }],
      track_total_hits: false,
      ...(after === undefined ? {} : { search_after: [after] }),
    },
  });
  return sourceHits(text);
}

/** The payloads with the passages of documents, in base64 and in the order of the documents; null for a document without passages. */
export async function passagesOf(
  engine: SearchEngine,
  index: string,
  page: readonly SourceHit[],
): Promise<readonly (string | null)[]> {
  const body = { documents: page.map(({ id, routing }) => ({ id, routing })) };
  return (await ask<{ payloads: (string | null)[] }>(engine, 'stored_passages', { path: { index }, body })).payloads;
}

async function writePage(
  engine: SearchEngine,
  index: string,
  page: readonly SourceHit[],
  payloads: readonly (string | null)[] | undefined,
): Promise<void> {
  let left = page.map(({ id, routing, source }, at) => {
    if (source === undefined) throw new MigrationError(`document [${id}] of index [${index}] has no _source`);
    return { id, routing, source, payload: payloads?.[at] };
  });
  for (let attempt = 0; left.length > 0; attempt += 1) {
    const statuses = await (payloads === undefined ? written : writtenWithPassages)(engine, index, left);
    left = left.filter((_, at) => statuses[at] === 429);
    if (left.length === 0) return;
    if (attempt >= RETRIES)
      throw new MigrationError(`there was no room for documents of index [${index}], again and again`);
    await sleep(FIRST_RETRY_MS * 2 ** attempt);
  }
}

/** A document on its way. */
interface Moving {
  readonly id: string;
  readonly routing: string | undefined;
  /** As it is written: numbers keep all their digits. */
  readonly source: string;
  readonly payload: string | null | undefined;
}

/** Writes documents by a bulk request; resolves with the status of each. */
async function written(engine: SearchEngine, index: string, documents: readonly Moving[]): Promise<readonly number[]> {
  const lines = documents.map(({ id, routing, source }) => {
    const action = { _id: id, ...(routing === undefined ? {} : { routing }) };
    return `${JSON.stringify({ index: action })}\n${inOneLine(source)}\n`;
  });
  // The vectors stand in the documents: no pipeline makes them again.
  const request = { path: { index }, query: { pipeline: '_none' }, body: lines.join('') };
  return statusesOf(index, documents, async () => {
    const { items } = await ask<{ items: Record<string, unknown>[] }>(engine, 'bulk', request);
    return items.map((item) => Object.values(item)[0]);
  });
}

/** Writes documents with their passages; resolves with the status of each. */
async function writtenWithPassages(
  engine: SearchEngine,
  index: string,
  documents: readonly Moving[],
): Promise<readonly number[]> {
  const parts = documents.map(({ id, routing, source, payload }) => {
    const about = JSON.stringify({ id, routing, payload });
    return `${about.slice(0, -1)},"source":${source}}`;
  });
  const request = { path: { index }, body: `{"documents":[${parts.join(',')}]}` };
  return statusesOf(
    index,
    documents,
    async () => (await ask<{ items: unknown[] }>(engine, 'write_passages', request)).items,
  );
}

async function statusesOf(
  index: string,
  documents: readonly Moving[],
  write: () => Promise<readonly unknown[]>,
): Promise<readonly number[]> {
  let items: readonly unknown[];
  try {
    items = await write();
  } catch (error) {
    if (error instanceof EngineError && error.status === 429) return documents.map(() => 429);
    throw error;
  }
  return items.map((item, at) => {
    const { status, error } = isObject(item) ? item : {};
    if (error !== undefined && status !== 429) {
      const reason = isObject(error) ? String(error['reason']) : JSON.stringify(error);
      throw new MigrationError(`document [${documents[at]?.id ?? ''}] of index [${index}] is refused: ${reason}`);
    }
    return Number(status);
  });
}

/** A source that was put with line breaks in it has none in a bulk request; inside of strings JSON has no line breaks. */
function inOneLine(source: string): string {
  return /[\r\n]/.test(source) ? source.replaceAll(/[\r\n]+/g, ' ') : source;
}
