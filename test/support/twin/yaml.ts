import type { Json } from './json-text.js';

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
