import { unterminated } from '@sparrow-search/engine';

import { illegal, refusal } from './errors.js';
import { type Json, type Member, elements, isObject, members, rawOf, textOf, whole } from './json.js';
import type { Given, Outcome } from './pipelines.js';

export type BulkKind = 'index' | 'create' | 'update' | 'delete';

/** Most writes of one request: each takes some hundred bytes of memory beside its lines. */
const MOST_ITEMS = 250_000;

/** Longest line that says what to do: an id has 512 bytes at most. */
const LONGEST_ACTION = 64 * 1024;

const KINDS: ReadonlySet<string> = new Set<BulkKind>(['index', 'create', 'update', 'delete']);

/** What an action says of its document, read once, and where it says it. */
interface Action {
  readonly value: Json;
  readonly members: readonly Member[];
}

/** One write of a bulk request. */
export class BulkItem {
  readonly #line: string;
  readonly #action: Action;
  readonly #source: Buffer;

  constructor(
    readonly position: number,
    readonly kind: BulkKind,
    line: string,
    action: Action,
    /** The line behind it; empty for a deletion. */
    source: Buffer,
    readonly index: string,
  ) {
    this.#line = line;
    this.#action = action;
    this.#source = source;
  }

  /** The line behind it; empty for a deletion. Most documents go on as the bytes that they came as, and nobody asks. */
  get source(): string {
    return this.#source.toString();
  }

  get id(): string | undefined {
    return textOf(this.#action.value['_id']);
  }

  get routing(): string | undefined {
    return textOf(this.#action.value['routing']);
  }

  /** The pipeline that the item itself names. */
  get pipeline(): string | undefined {
    return textOf(this.#action.value['pipeline']);
  }

  /** The same item at another position of a request. */
  at(position: number): BulkItem {
    return new BulkItem(position, this.kind, this.#line, this.#action, this.#source, this.index);
  }

  /** What its action says besides. */
  option(name: string): unknown {
    return this.#action.value[name];
  }

  /** Its lines as the cluster gets them: without a pipeline, which runs here. */
  written(): string {
    const { source } = this;
    if (this.pipeline === undefined) return `${this.#line}\n${source === '' ? '' : `${source}\n`}`;
    return this.#lines(this.index, this.id, this.routing, source);
  }

  /** Its lines with what a pipeline made of the document. */
  rewritten({ index, id, routing, source }: Given): string {
    return this.#lines(index, id, routing, source);
  }

  /** The answer to an item that did not come to be written. */
  failed(outcome: Outcome): string {
    const { status, error } = outcome.kind === 'failed' ? outcome : { status: 500, error: '{}' };
    const { _index, _id } = { _index: this.index, _id: this.id ?? null };
    return `{"${this.kind}":{"_index":${JSON.stringify(_index)},"_id":${JSON.stringify(_id)},"status":${String(status)},"error":${error}}}`;
  }

  /** The answer to an item whose document a pipeline dropped. */
  dropped(): string {
    const shards = { total: 0, successful: 0, failed: 0 };
    const noop = {
      _index: this.index,
      _id: this.id ?? null,
      _version: -4,
      result: 'noop',
      _shards: shards,
      status: 200,
    };
    return JSON.stringify({ [this.kind]: noop });
  }

  #lines(index: string, id: string | undefined, routing: string | undefined, source: string): string {
    const parts = [`"_index":${JSON.stringify(index)}`];
    if (id !== undefined) parts.push(`"_id":${JSON.stringify(id)}`);
    if (routing !== undefined) parts.push(`"routing":${JSON.stringify(routing)}`);
    for (const member of this.#action.members) {
      if (['_index', '_id', 'routing', 'pipeline'].includes(member.name)) continue;
      // Versions are longer than numbers here are exact.
      parts.push(`${JSON.stringify(member.name)}:${rawOf(this.#line, member)}`);
    }
    return `{"${this.kind}":{${parts.join(',')}}}\n${source}\n`;
  }
}

/** The lines of a bulk request. */
export class BulkBody {
  readonly items: readonly BulkItem[];

  /**
   * @param body UTF-8
   * @param index where writes go that name no index
   * @throws {EngineError} 400 for what is no sequence of actions, 413 for too many of them
   */
  constructor(body: Buffer, index: string | undefined) {
    if (isBlank(body)) throw refusal(400, 'parse_exception', 'request body is required');
    if (body.at(-1) !== LINE_END) throw illegal(unterminated('bulk', body));
    const lines = new Lines(body);
    const items: BulkItem[] = [];
    for (let bytes = lines.next(); bytes !== undefined; bytes = lines.next()) {
      if (isBlank(bytes)) continue;
      if (items.length === MOST_ITEMS) {
        const reason = `a bulk request over a cluster may have at most [${String(MOST_ITEMS)}] actions: send it in parts`;
        throw refusal(413, 'content_too_long_exception', reason);
      }
      const { number } = lines;
      const line = bytes.toString();
      const { kind, action } = readAction(line, number);
      const target = targetOf(action, number) ?? index;
      if (target === undefined || target === '') {
        throw refusal(400, 'action_request_validation_exception', 'Validation Failed: 1: index is missing;');
      }
      let source: Buffer = NOTHING;
      if (kind !== 'delete') {
        source = lines.next() ?? NOTHING;
        if (isBlank(source))
          throw illegal(`Malformed action/metadata line [${String(number)}], expected a document behind it`);
      }
      items.push(new BulkItem(items.length, kind, line, action, source, target));
    }
    this.items = items;
  }
}

const LINE_END = 0x0a;
const NOTHING = Buffer.alloc(0);

/** Whether there is nothing but blanks. */
function isBlank(bytes: Buffer): boolean {
  return bytes.every((byte) => byte === 0x20 || (byte >= 0x09 && byte <= 0x0d));
}

/** The lines of a body that ends with a line break, one after the other: all of them at once would be a list as long as the body. */
class Lines {
  /** Of the line that was read last, from 1. */
  number = 0;
  readonly #body: Buffer;
  #from = 0;

  constructor(body: Buffer) {
    this.#body = body;
  }

  next(): Buffer | undefined {
    const end = this.#body.indexOf(LINE_END, this.#from);
    if (end < 0) return undefined;
    const line = this.#body.subarray(this.#from, end);
    this.#from = end + 1;
    this.number += 1;
    return line;
  }
}

/** The index that an action names; the cluster takes null for none. */
function targetOf({ value: { _index: value = null }, members: found }: Action, number: number): string | undefined {
  // Of two the last one would be read here, and perhaps the first one there.
  const isTwice =
    found.findIndex(({ name }) => name === '_index') !== found.findLastIndex(({ name }) => name === '_index');
  if (isTwice || (value !== null && typeof value !== 'string')) {
    throw illegal(`Malformed action/metadata line [${String(number)}], expected one string for [_index]`);
  }
  return value ?? undefined;
}

function readAction(line: string, number: number): { readonly kind: BulkKind; readonly action: Action } {
  const malformed = (what: string): Error => illegal(`Malformed action/metadata line [${String(number)}], ${what}`);
  if (line.length > LONGEST_ACTION) throw malformed(`it is longer than [${String(LONGEST_ACTION)}] characters`);
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch (error) {
    throw malformed(String(error));
  }
  const [first, second] = isObject(value) ? members(line, whole(line).start) : [];
  const inside = first === undefined || !isObject(value) ? undefined : value[first.name];
  if (first === undefined || second !== undefined || !isObject(inside)) {
    throw malformed('expected an object with one action');
  }
  if (!KINDS.has(first.name)) {
    throw malformed(`expected field [create], [delete], [index] or [update] but found [${first.name}]`);
  }
  return { kind: first.name as BulkKind, action: { value: inside, members: members(line, first.start) } };
}

/** An item with the lines that it has by now, if any were made: a pipeline may have sent its document to another index. */
export function itemNow(item: BulkItem, changed: ReadonlyMap<number, string>): BulkItem {
  const lines = changed.get(item.position);
  const [now] = lines === undefined ? [] : new BulkBody(Buffer.from(lines), item.index).items;
  return now === undefined ? item : now.at(item.position);
}

/** The answers to the items of a bulk request, as the cluster wrote them. */
export function itemsIn(text: string): readonly string[] {
  const list = members(text, whole(text).start).find(({ name }) => name === 'items');
  return list === undefined ? [] : elements(text, list.start).map((span) => rawOf(text, span));
}
