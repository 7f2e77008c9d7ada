// What the engine over a cluster asks again once names may stand for other indices.
import { type Server, createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

import type { EngineRequest, SearchEngine } from '@sparrow-search/engine';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';

import { ClusterSearchEngine } from './cluster-engine.js';

const native = {
  execute: () => Promise.resolve({ status: 200, body: Buffer.from('{"endpoints":[]}') }),
  close: () => Promise.resolve(),
} as unknown as SearchEngine;
const log = { info: () => undefined, warn: () => undefined };

let server: Server;
let engine: ClusterSearchEngine;
let asked: string[];

beforeAll(async () => {
  server = createServer((request, response) => {
    const path = (request.url ?? '').split('?')[0] ?? '';
    asked.push(`${request.method ?? ''} ${path}`);
    // Nothing is kept by anybody.
    const isState = request.method === 'GET' && path.startsWith('/.sparrow');
    const answers: Record<string, object> = {
      '/': { version: { number: '8.19.0' }, tagline: 'You Know, for Search' },
      '/i/_mapping': { i: { mappings: {} } },
    };
    request.resume().on('end', () => {
      response.writeHead(isState ? 404 : 200, {
        'content-type': 'application/json',
        'x-elastic-product': 'Elasticsearch',
      });
      response.end(JSON.stringify(answers[path] ?? { found: false }));
    });
  });
  asked = [];
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const nodes = [`http://127.0.0.1:${String((server.address() as AddressInfo).port)}`];
  engine = await ClusterSearchEngine.open(native, { nodes, takesTasks: false }, log);
});
afterAll(async () => {
  await engine.close();
  server.close();
});
beforeEach(() => {
  asked = [];
});

/** How often a write asks for the mapping of its index. */
async function looks(): Promise<number> {
  asked = [];
  const request: EngineRequest = { op: 'index_doc', path: { index: 'i', id: '1' }, query: {} };
  await engine.execute(request, Buffer.from('{"a":1}'));
  return asked.filter((it) => it === 'GET /i/_mapping').length;
}

describe('what is believed of an index', () => {
  it.each<EngineRequest['op']>([
    'delete_index',
    'create_data_stream',
    'delete_data_stream',
    'delete_index_template',
    'delete_component_template',
    'restore_snapshot',
  ])('is forgotten after %s', async (op) => {
    await looks();
    expect(await looks()).toBe(0);
    await engine.execute({ op, path: { index: 'i', name: 'i', repository: 'r', snapshot: 's' }, query: {} });
    // All that a write wants to know is in one answer.
    expect(await looks()).toBe(1);
  });

  it('is believed after what changes no index', async () => {
    await looks();
    await engine.execute({ op: 'refresh', path: { index: 'i' }, query: {} });
    expect(await looks()).toBe(0);
  });
});
