// What the request editor proposes, sends and copies, with the server's own list of endpoints.
import { execFile, execFileSync } from 'node:child_process';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { promisify } from 'node:util';

import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { type RunningServer, startServer } from '../../../../test/support/server';
import { type Endpoint, catalogOf, endpointFor, planFor, splitLine } from './catalog';
import { completeBody, completeLine } from './complete';
import { type Language, asCode } from './copy';

let server: RunningServer;
let catalog: Endpoint[];
beforeAll(async () => {
  server = await startServer({ args: ['--deploy-at-start', 'false'] });
  catalog = catalogOf((await server.request('GET', '/_openapi.json')).body);
});
afterAll(async () => {
  await server.stop();
});

function hasPython(): boolean {
  try {
    execFileSync('python3', ['--version']);
    return true;
  } catch {
    return false;
  }
}

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
    const words = (body: string, line = 'POST /books/_search'): readonly string[] => {
      const { method, path } = splitLine(line)!;
      return completeBody(body, body.length, endpointFor(catalog, method, path)?.body, ['title', 'text']).words;
    };
    expect(words('{"qu')).toEqual(['query']);
    expect(words('{"query": {"match_ph')).toEqual(['match_phrase', 'match_phrase_prefix']);
    expect(words('{"aggs": {"by_tag": {"te')).toEqual(['terms']);
    expect(words('{"retriever": {"rrf": {"retrievers": [{"kn')).toEqual(['knn']);
    expect(words('{"retriever": {"linear": {"normalizer": "z')).toEqual(['zscore']);
    expect(words('{"mappings": {"properties": {"title": {"type": "semantic', 'PUT /books')).toEqual(['semantic_text']);
    expect(words('{"processors": [{"set": {"ov', 'PUT /_ingest/pipeline/p')).toEqual(['override']);
    expect(words('{"query": {"match": {"t')).toEqual(['title', 'text']);
    expect(words('{"query": {"terms": {"')).toEqual(['boost', '_name', 'title', 'text']);
    expect(words('{"query": {"semantic": {"field": "te')).toEqual(['text']);
    expect(words('{"query": {"bool": {"must": [{"ter')).toEqual(['term', 'terms', 'terms_set']);
    expect(words('{"size": 3, "hi')).toEqual(['highlight']);
    // What has to be there comes first.
    expect(words('{"retriever": {"rescorer": {"').slice(0, 2)).toEqual(['retriever', 'rescore']);
    // A value that is no field has no fields to choose from.
    expect(words('{"size": "')).toEqual([]);
    expect(words('{"source": {"index": "', 'POST /_reindex')).toEqual([]);
    expect(words('{"_source": ["ti')).toEqual(['title']);
    for (const name of ['constructor', 'toString', '__proto__', 'hasOwnProperty']) {
      expect(words(`{"${name}": {"t`)).toEqual(['title', 'text']);
    }
  });

  it('is copied letter for letter', async () => {
    const got: { url: string; method: string; type: string; body: string }[] = [];
    const listener = createServer((request, response) => {
      const parts: Buffer[] = [];
      request.on('data', (part: Buffer) => parts.push(part));
      request.on('end', () => {
        const { url = '', method = '', headers } = request;
        got.push({ url, method, type: headers['content-type'] ?? '', body: Buffer.concat(parts).toString() });
        // The official client asks who answers.
        response.writeHead(200, { 'X-elastic-product': 'Elasticsearch', 'Content-Type': 'application/json' }).end('{}');
      });
    });
    await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve));
    const origin = `http://127.0.0.1:${(listener.address() as AddressInfo).port}`;
    const env = { ...process.env, SPARROW_API_KEY: 'key' };
    const run = promisify(execFile);
    const programs: [Language, string, string[]][] = [
      ['curl', 'bash', ['-c']],
      ['TypeScript', process.execPath, ['--input-type=module', '-e']],
    ];
    if (hasPython()) programs.push(['Python', 'python3', ['-c']]);
    const bodies = [
      '@/etc/hostname',
      '{"n": 12345678901234567890, "f": 1.0, "__proto__": {"a": 1}, "n": 2}',
      '{\n  "a": "it\'s `x` ${HOME} $(id) \\u00e9 \\" \\\\",\n\t"b": "é \u{1F426} \u2028"\r\n}',
      '"\\"',
      '{"a": "\\\\n"}',
      '"""; import os',
      '\\',
    ];
    const cases = [...bodies, '{"half": "\uD83D"}'].flatMap((body) => [
      { path: '/books/_search', body, sent: body.replace(/\p{Surrogate}/u, '\uFFFD'), type: 'json' },
      { path: '/_bulk', body, sent: `${body.replace(/\p{Surrogate}/u, '\uFFFD')}\n`, type: 'x-ndjson' },
    ]);
    for (const [language, program, args] of programs) {
      got.length = 0;
      // All in one program, since starting one takes longest.
      const codes = cases.map(({ path, body }) => asCode(language, origin, { method: 'POST', path, body }));
      const [first = ''] = codes[0]?.split('\n') ?? [];
      const code =
        language === 'TypeScript'
          ? `${first}\n${codes.map((one) => `{${one.replace(first, '')}}`).join('\n')}`
          : codes.join('\n');
      await run(program, [...args, code], { env });
      expect(got, language).toEqual(
        cases.map(({ path, sent, type }) => ({
          url: path,
          method: 'POST',
          type: expect.stringContaining(type),
          body: sent,
        })),
      );
    }
    got.length = 0;
    await run('bash', ['-c', asCode('curl', origin, { method: 'POST', path: '/a[1-3]/{b,c}', body: '' })], { env });
    expect(got.map(({ url }) => url)).toEqual(['/a[1-3]/{b,c}']);
    listener.close();
    listener.closeAllConnections();
  });

  it('is copied as something that can be read', () => {
    const body = '{\n  "query": {"match": {"title": "x"}}\n}';
    const written = { method: 'POST', path: '/books/_search', body };
    expect(asCode('TypeScript', 'http://x', written)).toContain(`body: \`${body}\`,`);
    expect(asCode('Python', 'http://x', written)).toContain(`data=r"""${body}""".encode()`);
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
    for (const language of ['TypeScript', 'Python'] as const) {
      expect(asCode(language, server.url, written)).toContain('SPARROW_API_KEY');
      expect(asCode(language, server.url, written)).not.toContain(server.apiKey);
    }
    if (hasPython()) {
      expect(run('python3', '-c', asCode('Python', server.url, written))).toContain('"result":"updated"');
      expect(run('python3', '-c', asCode('Python', server.url, bulk))).toContain('"errors":false');
    }
    const javascript = asCode('TypeScript', server.url, { ...written, body: '{"b": 1}' });
    expect(run(process.execPath, '--input-type=module', '-e', javascript)).toContain("result: 'updated'");
  });
});
