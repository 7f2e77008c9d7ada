/** The thread that reads YAML: a body may be made so that reading it takes seconds. Answers each text with its JSON or a problem. */
import { parentPort } from 'node:worker_threads';

import { type CST, Parser, parseDocument } from 'yaml';

/** Deepest nesting that is read. */
const MAX_DEPTH = 100;

/** Most characters of JSON that are written for one body: aliases may stand for far more than there is in YAML. */
const MAX_WRITTEN = 8 * 1024 * 1024;

/** What the thread answers: the JSON, or what is wrong with the YAML. */
export type YamlReply = { readonly json: Uint8Array<ArrayBuffer> } | { readonly problem: string };

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
    checkDepth(text);
    const document = parseDocument(text, { intAsBigInt: true, prettyErrors: false, stringKeys: true });
    const [error] = document.errors;
    if (error !== undefined) return { problem: error.message };
    left = MAX_WRITTEN;
    return { json: new TextEncoder().encode(written(document.toJS({ maxAliasCount: 100 }), 0)) };
  } catch (error) {
    // Nested too deeply for the parser, or aliases that stand for too much.
    return { problem: error instanceof Error ? error.message : String(error) };
  }
}

/**
 * Fails for a text that is nested too deeply. What the library makes of its tokens calls itself for each level: near the end of the stack
 * even a regular expression that is compiled there ends the process, and nothing catches that.
 */
function checkDepth(text: string): void {
  let level: readonly CST.Token[] = [...new Parser().parse(text)];
  for (let depth = 0; level.length > 0; depth += 1) {
    // A document is a level of its own.
    if (depth > MAX_DEPTH + 1) throw new Error(TOO_DEEP);
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
  const text = textOf(value, depth);
  if (typeof value !== 'object' || value === null) left -= text.length;
  if (left < 0) throw new Error(`stands for more than [${String(MAX_WRITTEN)}] characters of JSON`);
  return text;
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
