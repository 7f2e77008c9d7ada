/** The thread that reads YAML: a body may be made so that reading it takes seconds. Answers each text with its JSON or a problem. */
import { readlinkSync } from 'node:fs';
import { basename } from 'node:path';
import { parentPort, workerData } from 'node:worker_threads';

import { type CST, type Document, Parser, isScalar, parseDocument, visit } from 'yaml';

/** Deepest nesting that is read. */
const MAX_DEPTH = 100;

/** Most values and keys: each takes a kilobyte of memory while it is read. */
const MAX_VALUES = 200_000;

/** Most characters of JSON that are written for one body: aliases may stand for far more than there is in YAML. */
const MAX_WRITTEN = 8 * 1024 * 1024;

/** What the thread answers: the JSON, or what is wrong with the YAML. */
export type YamlReply = { readonly json: Uint8Array<ArrayBuffer> } | { readonly problem: string };

/** Tells the number of this thread, by which Linux says how long it has worked; elsewhere it stays zero. */
function tellNumber(): void {
  if (!(workerData instanceof Int32Array)) return;
  try {
    workerData[0] = Number(basename(readlinkSync('/proc/thread-self')));
  } catch {
    // Another system.
  }
}

tellNumber();

parentPort?.on('message', (bytes: Uint8Array) => {
  const reply = read(bytes);
  parentPort?.postMessage(reply, 'json' in reply ? [reply.json.buffer] : []);
});

function read(bytes: Uint8Array): YamlReply {
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return { problem: 'Invalid UTF-8' };
  }
  try {
    checkStructure(text);
    // The library compares each key with all before it.
    const options = { intAsBigInt: true, prettyErrors: false, stringKeys: true, uniqueKeys: false } as const;
    const document = parseDocument(text, options);
    const [error] = document.errors;
    if (error !== undefined) return { problem: error.message };
    checkKeys(document);
    left = MAX_WRITTEN;
    return { json: new TextEncoder().encode(written(document.toJS({ maxAliasCount: 100 }), 0)) };
  } catch (error) {
    // Nested too deeply for the parser, or aliases that stand for too much.
    return { problem: error instanceof Error ? error.message : String(error) };
  }
}

/** Fails for a map that has a key twice. */
function checkKeys(document: Document): void {
  visit(document, {
    Map: (_, { items }) => {
      const keys = new Set<unknown>();
      for (const { key } of items) {
        if (!isScalar(key)) continue;
        if (keys.has(key.value)) throw new Error('Map keys must be unique');
        keys.add(key.value);
      }
    },
  });
}

/**
 * Fails for a text that has too many values, or is nested too deeply. What the library makes of its tokens calls itself for each level: near the end of the stack
 * even a regular expression that is compiled there ends the process, and nothing catches that.
 */
function checkStructure(text: string): void {
  let level: readonly CST.Token[] = [...new Parser().parse(text)];
  let values = 0;
  for (let depth = 0; level.length > 0; depth += 1) {
    // A document is a level of its own.
    if (depth > MAX_DEPTH + 1) throw new Error(TOO_DEEP);
    values += level.length;
    if (values > MAX_VALUES) throw new Error(`has more than [${String(MAX_VALUES)}] values and keys: send it as JSON`);
    level = level.flatMap(within);
  }
}

/** What lies directly in a token. */
function within(token: CST.Token): readonly CST.Token[] {
  if (token.type === 'document') return token.value === undefined ? [] : [token.value];
  if (token.type !== 'block-map' && token.type !== 'block-seq' && token.type !== 'flow-collection') return [];
  return token.items.flatMap(({ key, value }) => [key, value].filter((part) => part !== undefined && part !== null));
}

const TOO_DEEP = `nested deeper than [${String(MAX_DEPTH)}] levels`;

/** Characters that may still be written for this body. */
let left = MAX_WRITTEN;

function written(value: unknown, depth: number): string {
  // An empty list is two characters too, and each comma and colon is one.
  if (typeof value === 'object' && value !== null)
    spend(2 + (Array.isArray(value) ? value.length : 2 * Object.keys(value).length));
  const text = textOf(value, depth);
  if (typeof value !== 'object' || value === null) spend(text.length);
  return text;
}

function spend(characters: number): void {
  left -= characters;
  if (left < 0) throw new Error(`stands for more than [${String(MAX_WRITTEN)}] characters of JSON`);
}

function textOf(value: unknown, depth: number): string {
  if (depth > MAX_DEPTH) throw new Error(TOO_DEEP);
  if (typeof value === 'bigint') return String(value);
  if (typeof value === 'number') {
    if (!Number.isFinite(value)) throw new Error(`[${String(value)}] is not a number in JSON`);
    return JSON.stringify(value);
  }
  if (value === null || value === undefined) return 'null';
  if (typeof value === 'string' || typeof value === 'boolean') return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map((item) => written(item, depth + 1)).join(',')}]`;
  if (typeof value === 'object' && Object.getPrototypeOf(value) === Object.prototype) {
    const members = Object.entries(value).map(([key, item]) => `${written(key, depth)}:${written(item, depth + 1)}`);
    return `{${members.join(',')}}`;
  }
  throw new Error('a value that JSON does not have');
}
