// What the request editor proposes, sends and copies, with the server's own list of endpoints.
import { execFileSync } from 'node:child_process';

import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { type RunningServer, startServer } from '../../../../test/support/server';
import { type Endpoint, catalogOf, endpointFor, planFor, splitLine } from './catalog';
import { completeBody, completeLine } from './complete';
import { asCode } from './copy';

let server: RunningServer;
let catalog: Endpoint[];
beforeAll(async () => {
  server = await startServer({ args: ['--deploy-at-start', 'false'] });
  catalog = catalogOf((await server.request('GET', '/_openapi.json')).body);
});
afterAll(async () => {
  await server.stop();
});

describe('a request', () => {
  it('is split into its method and its path', () => {
    expect(splitLine(' get _cat/indices?v ')).toEqual({ method: 'GET', path: '/_cat/indices?v' });
    expect(splitLine('/books')).toEqual({ method: 'GET', path: '/books' });
    expect(splitLine('GET two words')).toBeUndefined();
  });

  it('finds its endpoint, literal parts first', () => {
    const path = (line: string): string | undefined => {
      const split = splitLine(line)!;
      return endpointFor(catalog, split.method, split.path)?.path;
    };
    expect(path('GET /books/_search?size=1')).toBe('/{index}/_search');
    expect(path('GET /_search')).toBe('/_search');
    expect(path('GET /books')).toBe('/{index}');
    expect(path('GET /_nowhere')).toBeUndefined();
    expect(path('POST /_ml/trained_models/x/_infer')).toBe('/_ml/trained_models/{model}/_infer');
  });

  it('goes out as what it is, or as a POST only where that is the same', () => {
    const plan = (line: string, body: string): unknown => planFor(catalog, { ...splitLine(line)!, body });
    expect(plan('GET /books/_search', '{}')).toMatchObject({
      send: { method: 'POST', body: '{}' },
      says: 'Sent as POST.',
    });
    expect(plan('GET /books/_search', ' ')).toEqual({ send: { method: 'GET', path: '/books/_search', body: '' } });
    expect(plan('POST /books/_doc', '{}')).toEqual({ send: { method: 'POST', path: '/books/_doc', body: '{}' } });
    // A body that is left from before must not turn a reading into a writing.
    expect(plan('GET /_cat/indices', '{}')).toMatchObject({
      send: { method: 'GET', body: '' },
      says: expect.stringContaining('takes no body'),
    });
    expect(plan('GET /books/_doc/1', '{"a":1}')).toMatchObject({ send: { method: 'GET', body: '' } });
    expect(plan('DELETE /books', '{}')).toMatchObject({ send: { method: 'DELETE', body: '' } });
    expect(plan('GET /_unknown/thing', '{}')).toHaveProperty('refused');
  });

  it('is completed', () => {
    expect(completeLine('G', catalog, [])).toEqual(['GET /']);
    expect(completeLine('GET /books/_sea', catalog, ['books'])).toContain('GET /books/_search');
    expect(completeLine('GET /_cat/ind', catalog, [])).toContain('GET /_cat/indices');
    const words = (body: string): readonly string[] =>
      completeBody(body, body.length, '/books/_search', ['title', 'text']).words;
    expect(words('{"qu')).toEqual(['query']);
    expect(words('{"query": {"ma')).toEqual(['match', 'match_all', 'match_phrase']);
    expect(words('{"query": {"match": {"t')).toEqual(['title', 'text']);
    expect(words('{"query": {"semantic": {"field": "te')).toEqual(['text']);
    expect(words('{"query": {"bool": {"must": [{"ter')).toEqual(['term', 'terms']);
    expect(words('{"size": 3, "hi')).toEqual(['highlight']);
    for (const name of ['constructor', 'toString', '__proto__', 'hasOwnProperty']) {
      expect(words(`{"${name}": {"t`)).toEqual(['title', 'text']);
    }
  });

  it('is copied as curl and Python that run', async () => {
    const written = {
      method: 'PUT',
      path: '/copied/_doc/1?refresh=true',
      body: '{"text": "it\'s \\"quoted\\" and 100 % fine"}',
    };
    const env = { ...process.env, SPARROW_API_KEY: server.apiKey };
    const run = (program: string, ...args: string[]): string => execFileSync(program, args, { env, encoding: 'utf8' });
    expect(run('bash', '-c', asCode('curl', server.url, written))).toContain('"result":"created"');
    const { body } = await server.request('GET', '/copied/_doc/1');
    expect(body._source).toEqual({ text: 'it\'s "quoted" and 100 % fine' });
    const bulk = { method: 'POST', path: '/_bulk', body: '{"index":{"_index":"copied","_id":"2"}}\n{"a":1}' };
    expect(run('bash', '-c', asCode('curl', server.url, bulk))).toContain('"errors":false');
    for (const language of ['JavaScript', 'Python'] as const) {
      expect(asCode(language, server.url, written)).toContain('SPARROW_API_KEY');
      expect(asCode(language, server.url, written)).not.toContain(server.apiKey);
    }
    let python = true;
    try {
      run('python3', '--version');
    } catch {
      python = false;
    }
    if (python) {
      expect(run('python3', '-c', asCode('Python', server.url, written))).toContain('"result":"updated"');
      expect(run('python3', '-c', asCode('Python', server.url, bulk))).toContain('"errors":false');
    }
    const javascript = asCode('JavaScript', server.url, { ...written, body: '{"b": 1}' });
    expect(run(process.execPath, '--input-type=module', '-e', javascript)).toContain("result: 'updated'");
  });
});
