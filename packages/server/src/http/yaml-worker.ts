/** The thread that reads YAML: a body may be made so that reading it takes seconds. Answers each text with its JSON or a problem. */
import { parentPort } from 'node:worker_threads';

import { parseDocument } from 'yaml';

/** Deepest nesting that is read. */
const MAX_DEPTH = 100;

/** What the thread answers: the JSON, or what is wrong with the YAML. */
export type YamlReply = { readonly json: string } | { readonly problem: string };

parentPort?.on('message', (text: string) => {
  parentPort?.postMessage(read(text));
});

function read(text: string): YamlReply {
  try {
    const document = parseDocument(text, { intAsBigInt: true, prettyErrors: false, stringKeys: true });
    const [error] = document.errors;
    if (error !== undefined) return { problem: error.message };
    return { json: written(document.toJS({ maxAliasCount: 100 }), 0) };
  } catch (error) {
    // Nested too deeply for the parser, or aliases that stand for too much.
    return { problem: error instanceof Error ? error.message : String(error) };
  }
}

function written(value: unknown, depth: number): string {
  if (depth > MAX_DEPTH) throw new Error(`nested deeper than [${String(MAX_DEPTH)}] levels`);
  if (typeof value === 'bigint') return String(value);
  if (typeof value === 'number') {
    if (!Number.isFinite(value)) throw new Error(`[${String(value)}] is not a number in JSON`);
    return JSON.stringify(value);
  }
  if (value === null || value === undefined) return 'null';
  if (typeof value === 'string' || typeof value === 'boolean') return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map((item) => written(item, depth + 1)).join(',')}]`;
  if (typeof value === 'object' && Object.getPrototypeOf(value) === Object.prototype) {
    const members = Object.entries(value).map(([key, item]) => `${JSON.stringify(key)}:${written(item, depth + 1)}`);
    return `{${members.join(',')}}`;
  }
  throw new Error('a value that JSON does not have');
}
