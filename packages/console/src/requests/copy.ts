// A request as code, for other clients. The key is never in it: each reads it from the environment.
import { bodyType } from '../lib/api';
import type { Written } from './catalog';

export type Language = 'curl' | 'JavaScript' | 'Python';
export const LANGUAGES: readonly Language[] = ['curl', 'JavaScript', 'Python'];

export function asCode(language: Language, origin: string, { method, path, body }: Written): string {
  const text = body.trim();
  return { curl, JavaScript: javascript, Python: python }[language](origin, method, path, text);
}

function curl(origin: string, method: string, path: string, body: string): string {
  // In single quotes a shell reads everything as it stands, but the quote itself.
  const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;
  const isLines = bodyType(path) === 'application/x-ndjson';
  return [
    `curl -sS -X ${method} ${quoted(origin + path)}`,
    `  -H "Authorization: ApiKey $SPARROW_API_KEY"`,
    ...(body === ''
      ? []
      : [
          `  -H 'Content-Type: ${bodyType(path)}'`,
          `  ${isLines ? '--data-binary' : '-d'} ${quoted(isLines ? `${body}\n` : body)}`,
        ]),
  ].join(' \\\n');
}

function javascript(origin: string, method: string, path: string, body: string): string {
  // `fetch` refuses a body with GET everywhere; the official client does not.
  return [
    "import { Client } from '@elastic/elasticsearch';",
    '',
    `const client = new Client({ node: ${JSON.stringify(origin)}, auth: { apiKey: process.env.SPARROW_API_KEY } });`,
    'const answer = await client.transport.request({',
    `  method: ${JSON.stringify(method)},`,
    `  path: ${JSON.stringify(path.split('?')[0])},`,
    ...(path.includes('?') ? [`  querystring: ${JSON.stringify(path.slice(path.indexOf('?') + 1))},`] : []),
    ...(body === ''
      ? []
      : bodyType(path) === 'application/x-ndjson'
        ? [`  bulkBody: ${JSON.stringify(`${body}\n`)},`]
        : [`  body: ${indented(body, '  ')},`]),
    '});',
    'console.log(answer);',
    '',
  ].join('\n');
}

function python(origin: string, method: string, path: string, body: string): string {
  const isLines = bodyType(path) === 'application/x-ndjson';
  return [
    'import os',
    'import urllib.request',
    '',
    'request = urllib.request.Request(',
    `    ${JSON.stringify(origin + path)},`,
    `    method=${JSON.stringify(method)},`,
    `    headers={"Authorization": "ApiKey " + os.environ["SPARROW_API_KEY"], "Content-Type": ${JSON.stringify(bodyType(path))}},`,
    ...(body === '' ? [] : [`    data=${JSON.stringify(isLines ? `${body}\n` : compact(body))}.encode(),`]),
    ')',
    'print(urllib.request.urlopen(request).read().decode())',
    '',
  ].join('\n');
}

function compact(body: string): string {
  try {
    return JSON.stringify(JSON.parse(body));
  } catch {
    return body;
  }
}

function indented(body: string, by: string): string {
  try {
    return JSON.stringify(JSON.parse(body), null, 2).replaceAll('\n', `\n${by}`);
  } catch {
    return JSON.stringify(body);
  }
}
