// A request as code, for other clients. The key is never in it: each reads it from the environment.
import { bodyType } from '../lib/api';
import type { Written } from './catalog';

export type Language = 'curl' | 'TypeScript' | 'Python';
export const LANGUAGES: readonly Language[] = ['curl', 'TypeScript', 'Python'];

export function asCode(language: Language, origin: string, { method, path, body }: Written): string {
  const text = wellFormed(body.trim());
  // The last line of a list of lines ends as the others do.
  const sent = text !== '' && isLines(path) ? `${text}\n` : text;
  return { curl, TypeScript: typescript, Python: python }[language](origin, method, wellFormed(path), sent);
}

function isLines(path: string): boolean {
  return bodyType(path) === 'application/x-ndjson';
}

/** A text as it is sent: half a letter, which UTF-8 does not have, goes out as the sign for a broken one. */
function wellFormed(text: string): string {
  return text.replace(/\p{Surrogate}/gu, '\uFFFD');
}

function curl(origin: string, method: string, path: string, body: string): string {
  // In single quotes a shell reads everything as it stands, but the quote itself.
  const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;
  return [
    // Without -g, brackets and braces in a path make several requests of one.
    `curl -sS -g -X ${method} ${quoted(origin + path)}`,
    `  -H "Authorization: ApiKey $SPARROW_API_KEY"`,
    ...(body === ''
      ? []
      : [
          `  -H 'Content-Type: ${bodyType(path)}'`,
          // Others than this one take a body that begins with @ for the name of a file to send.
          `  --data-raw ${quoted(body)}`,
        ]),
  ].join(' \\\n');
}

function typescript(origin: string, method: string, path: string, body: string): string {
  // `fetch` refuses a body with GET everywhere; the official client does not.
  return [
    "import { Client } from '@elastic/elasticsearch';",
    '',
    `const client = new Client({ node: ${JSON.stringify(origin)}, auth: { apiKey: process.env['SPARROW_API_KEY'] ?? '' } });`,
    'const answer = await client.transport.request({',
    `  method: ${JSON.stringify(method)},`,
    `  path: ${JSON.stringify(path.split('?')[0])},`,
    ...(path.includes('?') ? [`  querystring: ${JSON.stringify(path.slice(path.indexOf('?') + 1))},`] : []),
    ...(body === '' ? [] : [`  ${isLines(path) ? 'bulkBody' : 'body'}: ${templateOf(body)},`]),
    // The client takes a text for JSON only if that is said.
    body === '' || isLines(path) ? '});' : "}, { headers: { 'content-type': 'application/json' } });",
    'console.log(answer);',
    '',
  ].join('\n');
}

function python(origin: string, method: string, path: string, body: string): string {
  return [
    'import os',
    'import urllib.request',
    '',
    'request = urllib.request.Request(',
    `    ${JSON.stringify(origin + path)},`,
    `    method=${JSON.stringify(method)},`,
    `    headers={"Authorization": "ApiKey " + os.environ["SPARROW_API_KEY"], "Content-Type": ${JSON.stringify(bodyType(path))}},`,
    ...(body === '' ? [] : [`    data=${rawOf(body)}.encode(),`]),
    ')',
    'print(urllib.request.urlopen(request).read().decode())',
    '',
  ].join('\n');
}

/** What an editor, a clipboard or a language may change or hide between quotes: all control characters but a line feed and a tab. */
const CHANGED = /(?![\n\t])\p{Cc}/u;

/** A text in JavaScript, letter for letter: as it stands where that is safe, or else with escapes. */
function templateOf(text: string): string {
  if (CHANGED.test(text) || /`|\$\{|\\$/.test(text)) return JSON.stringify(text);
  return `${text.includes('\\') ? 'String.raw' : ''}\`${text}\``;
}

/** A text as a Python literal: raw where that is safe, else with the escapes of JSON, which Python reads as JavaScript does. */
function rawOf(text: string): string {
  return CHANGED.test(text) || /"""|["\\]$/.test(text) ? JSON.stringify(text) : `r"""${text}"""`;
}
