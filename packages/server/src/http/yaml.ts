import type { Document } from 'yaml';

import { HttpError } from '../errors.js';
import type { Json } from './json-text.js';

/** Longest body in YAML: reading it takes the event loop's time, of which JSON takes none. */
const MAX_BODY = 1024 * 1024;

/** Deepest nesting that is read. */
const MAX_DEPTH = 100;

/** Keys that need no quotes: plain words which are nothing else to any version of YAML. */
const PLAIN_KEY = /^[A-Za-z_][\w./-]*$/;
const RESERVED = /^(?:y|n|yes|no|on|off|true|false|null)$/i;

/** An answer as YAML, laid out as Elasticsearch does: strings in double quotes, numbers as they were. */
export function toYaml(json: Json): string {
  return `---\n${isEmpty(json) || json.kind === 'scalar' ? `${inline(json)}\n` : block(json, '')}`;
}

function block(json: Json, margin: string): string {
  if (json.kind === 'object') {
    return json.entries
      .map(([key, value]) => {
        const name = `${margin}${keyText(key)}:`;
        if (isEmpty(value) || value.kind === 'scalar') return `${name} ${inline(value)}\n`;
        // The items of a list stand under its key, not farther in.
        return `${name}\n${block(value, value.kind === 'array' ? margin : `${margin}  `)}`;
      })
      .join('');
  }
  if (json.kind === 'array') {
    return json.items
      .map((item) => {
        if (isEmpty(item) || item.kind === 'scalar') return `${margin}- ${inline(item)}\n`;
        return `${margin}- ${block(item, `${margin}  `).slice(margin.length + 2)}`;
      })
      .join('');
  }
  return inline(json);
}

function isEmpty(json: Json): boolean {
  return (json.kind === 'object' && json.entries.length === 0) || (json.kind === 'array' && json.items.length === 0);
}

function inline(json: Json): string {
  if (json.kind === 'object') return '{}';
  if (json.kind === 'array') return '[]';
  return json.text.startsWith('"') ? quoted(json.text) : json.text;
}

function keyText(key: string): string {
  const name = key.slice(1, -1);
  return PLAIN_KEY.test(name) && !RESERVED.test(name) ? name : quoted(key);
}

/** A string of JSON is one of YAML, but for escapes that YAML 1.1 does not have, and surrogates. */
function quoted(text: string): string {
  return /\\[u/]/.test(text) ? JSON.stringify(JSON.parse(text)) : text;
}

/**
 * A body in YAML as JSON.
 *
 * @throws {HttpError} 400 when it is not YAML, holds what JSON cannot, or is too deep or too long
 */
export async function yamlToJson(bytes: Uint8Array): Promise<Uint8Array> {
  if (bytes.length > MAX_BODY) {
    throw new HttpError(
      'illegal_argument',
      `a body in YAML may have up to [${String(MAX_BODY)}] bytes, but has [${String(bytes.length)}]: send it as JSON`,
    );
  }
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw malformed('Invalid UTF-8');
  }
  // Only requests in YAML load it.
  const { parseDocument } = await import('yaml');
  let document: Document;
  try {
    document = parseDocument(text, { intAsBigInt: true, prettyErrors: false, stringKeys: true });
    const [error] = document.errors;
    if (error !== undefined) throw malformed(error.message);
    return new TextEncoder().encode(written(document.toJS({ maxAliasCount: 100 }), 0));
  } catch (error) {
    if (error instanceof HttpError) throw error;
    // Nested too deeply for the parser, or aliases that stand for too much.
    throw malformed(error instanceof Error ? error.message : String(error));
  }
}

function written(value: unknown, depth: number): string {
  if (depth > MAX_DEPTH) throw malformed(`nested deeper than [${String(MAX_DEPTH)}] levels`);
  if (typeof value === 'bigint') return String(value);
  if (typeof value === 'number') {
    if (!Number.isFinite(value)) throw malformed(`[${String(value)}] is no number of JSON`);
    return JSON.stringify(value);
  }
  if (value === null || value === undefined) return 'null';
  if (typeof value === 'string' || typeof value === 'boolean') return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map((item) => written(item, depth + 1)).join(',')}]`;
  if (typeof value === 'object' && Object.getPrototypeOf(value) === Object.prototype) {
    const members = Object.entries(value).map(([key, item]) => `${JSON.stringify(key)}:${written(item, depth + 1)}`);
    return `{${members.join(',')}}`;
  }
  throw malformed('a value that JSON does not have');
}

function malformed(problem: string): HttpError {
  return new HttpError('json', `[1:1] ${problem}`, { causedBy: { type: 'mark_yaml_exception', reason: problem } });
}
