// A request is answered alike whether it says how long its body is or sends it in chunks: every route of the table is asked of two servers in
// the same state, of one in either way. Over a real socket, which `app.request()` has none of.
import { request as httpRequest } from 'node:http';

import { ENDPOINTS } from '@sparrow-search/server';
import { afterAll, beforeAll, expect, it } from 'vitest';

import { type RunningServer, startServer } from '../support/server.js';

/** Headers that say when or by whom, not what. */
const PASSING = new Set([
  'date',
  'connection',
  'keep-alive',
  'x-request-id',
  'content-length',
  'transfer-encoding',
  'location',
]);
/** Members whose names are ids, addresses or thread names of one server. */
const NAMED_BY_CHANCE = new Set(['nodes', 'tasks', 'components', 'paths']);

interface Answer {
  readonly status: number;
  readonly headers: readonly string[];
  readonly body: unknown;
}

let servers: readonly [RunningServer, RunningServer];

beforeAll(async () => {
  servers = [await startServer(), await startServer()];
  for (const server of servers) {
    await server.request('PUT', '/twin', {
      // No refresh may come that only one of them has when it is asked.
      settings: { refresh_interval: '-1' },
      mappings: { properties: { text: { type: 'text' } } },
    });
    await server.request('PUT', '/twin/_doc/twin?refresh=true', { text: 'the same on both' });
  }
}, 60_000);

afterAll(async () => {
  await Promise.all(servers.map((server) => server.stop()));
});

function ask(server: RunningServer, method: string, path: string, isChunked: boolean): Promise<Answer> {
  const body =
    method === 'GET' || method === 'DELETE' ? '' : path.endsWith('_bulk') || path.includes('_msearch') ? '{}\n' : '{}';
  return new Promise((resolve, reject) => {
    const headers = {
      authorization: `ApiKey ${server.apiKey}`,
      ...(body === '' ? {} : { 'content-type': 'application/json' }),
      ...(isChunked ? { 'transfer-encoding': 'chunked' } : { 'content-length': String(body.length) }),
    };
    const request = httpRequest(server.url + path, { method, headers }, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('end', () => {
        const named = Object.entries(response.headers).filter(([name]) => !PASSING.has(name));
        resolve({
          status: response.statusCode ?? 0,
          headers: named.map(([name, value]) => `${name}: ${String(value)}`).sort(),
          body: shapeOf(Buffer.concat(chunks).toString(), String(response.headers['content-type'])),
        });
      });
      response.on('error', reject);
    });
    request.on('error', reject);
    request.end(body);
  });
}

/** What an answer consists of, without figures and texts, in which two servers differ; reasons of errors as they are. */
function shapeOf(text: string, type: string): unknown {
  if (text === '' || !type.includes('json')) return text === '' ? 'nothing' : type;
  const shape = (value: unknown, name: string): unknown => {
    if (Array.isArray(value)) return value.length === 0 ? [] : [shape(value[0], name)];
    if (typeof value === 'object' && value !== null) {
      if (NAMED_BY_CHANCE.has(name)) return 'named by chance';
      return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, shape(member, key)]));
    }
    // An index is named with its uuid.
    return name === 'type' || name === 'reason' ? String(value).replaceAll(/\/[\w-]{22}\]/g, '/uuid]') : typeof value;
  };
  return shape(JSON.parse(text), '');
}

it('answers every route alike in both framings', async () => {
  const differing: object[] = [];
  let answered = 0;
  // What removes comes last, so that the others find something.
  const ordered = [...ENDPOINTS].sort((a, b) => Number(a.method === 'DELETE') - Number(b.method === 'DELETE'));
  for (const { method, path } of ordered) {
    const filled = path.replaceAll(/\{\w+\}/g, 'twin');
    const [usual, chunked] = [
      await ask(servers[0], method, filled, false),
      await ask(servers[1], method, filled, true),
    ];
    answered += Number(usual.status < 300);
    if (JSON.stringify(usual) !== JSON.stringify(chunked)) differing.push({ method, filled, usual, chunked });
  }
  expect(differing).toEqual([]);
  expect(answered).toBeGreaterThan(60);
}, 120_000);
