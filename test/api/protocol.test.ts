// The HTTP protocol against the real server: media types, encodings, headers, connections, and what is not HTTP at all.
import { request as httpRequest } from 'node:http';
import { connect } from 'node:net';
import { deflateRawSync, deflateSync, gunzipSync, gzipSync, inflateSync } from 'node:zlib';

import { zstdCompress, zstdPieces } from '@sparrow-search/engine';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parse as parseYaml } from 'yaml';

import { type Answer, type RunningServer, startServer } from '../support/server.js';

let server: RunningServer;
const VENDORED = 'application/vnd.elasticsearch+json; compatible-with=8';
const VENDORED_9 = 'application/vnd.elasticsearch+json; compatible-with=9';
const call = (method: string, path: string, body?: unknown, headers: Record<string, string> = {}): Promise<Answer> =>
  server.request(method, path, body, { headers });

async function unpacked(bytes: Uint8Array): Promise<Buffer> {
  const pieces: Buffer[] = [];
  for await (const piece of zstdPieces(bytes)) pieces.push(piece);
  return Buffer.concat(pieces);
}

beforeAll(async () => {
  server = await startServer({ args: ['--deploy-at-start', 'false', '--max-body-bytes', '200000'] });
  await call('PUT', '/books', {
    mappings: { properties: { title: { type: 'text' }, n: { type: 'integer' }, v: { type: 'sparse_vector' } } },
  });
  const lines = Array.from(
    { length: 40 },
    (_, n) => `{"index":{"_id":"${String(n)}"}}\n{"title":"book ${String(n)}","n":${String(n)}}\n`,
  );
  await call('POST', '/books/_bulk?refresh=true', lines.join(''));
});

afterAll(async () => {
  await server.stop();
});

/** Bytes of an answer as they came. */
function raw(path: string, headers: Record<string, string>): Promise<{ headers: Answer['headers']; bytes: Buffer }> {
  return new Promise((resolve, reject) => {
    const request = httpRequest(
      server.url + path,
      { headers: { authorization: `ApiKey ${server.apiKey}`, ...headers } },
      (response) => {
        const chunks: Buffer[] = [];
        response.on('data', (chunk: Buffer) => chunks.push(chunk));
        response.on('end', () => {
          resolve({ headers: response.headers, bytes: Buffer.concat(chunks) });
        });
      },
    );
    request.on('error', reject);
    request.end();
  });
}

/** What a connection gives back for some bytes, until it ends or has been quiet for a while; the first bytes may take longer. */
function talk(text: string, first = 20_000): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(Number(new URL(server.url).port), '127.0.0.1');
    let said = '';
    socket.setTimeout(first, () => socket.destroy());
    socket.on('data', (chunk) => {
      said += chunk.toString();
      socket.setTimeout(1000);
    });
    socket.on('close', () => {
      resolve(said);
    });
    socket.on('error', reject);
    socket.write(text);
  });
}

describe('a refusal for want of a key', () => {
  const get = (path: string, key?: string): string =>
    `GET ${path} HTTP/1.1\r\nHost: x\r\n${key === undefined ? '' : `Authorization: ApiKey ${key}\r\n`}\r\n`;
  const statuses = (said: string): string[] => [...said.matchAll(/HTTP\/1.1 (\d+)/g)].map(([, status = '']) => status);

  it('ends the connection, so that nobody gets one after the other', async () => {
    for (const key of [undefined, 'QQ==']) {
      const said = await talk(get('/books', key).repeat(10));
      expect(statuses(said)).toEqual(['401']);
      expect(said).toContain('\r\nConnection: close\r\n');
    }
  });

  it('does not end one that a right key was shown on, nor one without a refusal', async () => {
    const said = await talk(get('/books', server.apiKey) + get('/books', 'QQ==') + get('/books') + get('/_ready'));
    expect(statuses(said)).toEqual(['200', '401', '401', '200']);
    expect(said).not.toContain('Connection: close');
    expect(statuses(await talk(get('/_ready') + get('/books', server.apiKey)))).toEqual(['200', '200']);
  });

  it('does not cut off a body that is still on its way, so that the refusal is read', async () => {
    const head =
      'POST /books/_doc HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100000\r\n\r\n';
    const said = await talk(head);
    expect(statuses(said)).toEqual(['401']);
    expect(said).not.toContain('Connection: close');
  });
});

describe('headers that can be read in several ways', () => {
  const exchange = async (
    lines: readonly string[],
    path = '/books/_search',
    body = '{"size":0}',
  ): Promise<[number, string]> => {
    const head = [
      `POST ${path} HTTP/1.1`,
      'Host: x',
      ...lines,
      `Content-Length: ${String(body.length)}`,
      'Connection: close',
    ];
    const said = await talk(`${head.join('\r\n')}\r\n\r\n${body}`);
    return [Number(said.slice(9, 12)), said.split('\r\n\r\n')[1] ?? ''];
  };
  const key = (): string => `Authorization: ApiKey ${server.apiKey}`;
  const json = 'Content-Type: application/json';
  // As it is, and with an escape that the router resolves.
  const PATHS = ['/books/_search', '/b%6foks/_search'];

  it('are refused where one counts: two keys, two types', async () => {
    for (const path of PATHS) {
      expect(await exchange([key(), json], path)).toEqual([200, expect.stringContaining('"total"')]);
      for (const [lines, name] of [
        [[key(), 'authorization: ApiKey bm86bm8=', json], 'Authorization'],
        [['AUTHORIZATION: Basic bm86bm8=', key(), json], 'Authorization'],
        [[key(), key(), json], 'Authorization'],
        [[`${key()}, ApiKey bm86bm8=`, json], 'Authorization'],
        [[key(), json, 'content-type: text/plain'], 'Content-Type'],
      ] as const) {
        const [status, body] = await exchange(lines, path);
        expect([status, JSON.parse(body)]).toMatchObject([
          400,
          {
            error: {
              type: 'illegal_argument_exception',
              reason: `multiple values for single-valued header [${name}]; send it once`,
            },
            status: 400,
          },
        ]);
      }
    }
  });

  it('are refused where there are too many, and none is left out before that', async () => {
    const many = (count: number): string[] => Array.from({ length: count }, () => 'a:b');
    for (const path of PATHS) {
      expect((await exchange([key(), json, ...many(900)], path))[0]).toBe(200);
      for (const count of [1100, 2200, 2900]) {
        const [status, body] = await exchange([key(), json, ...many(count)], path);
        expect([status, body]).toEqual([400, expect.stringContaining('the request has more than [1000] headers')]);
      }
    }
  });
});

describe('a path with a segment of dots', () => {
  /** Status of an answer to a path that nobody resolves on the way. */
  const status = (method: string, path: string): Promise<number | undefined> =>
    new Promise((resolve, reject) => {
      const headers = { authorization: `ApiKey ${server.apiKey}` };
      const request = httpRequest(server.url, { method, path, headers }, (response) => {
        response.resume();
        resolve(response.statusCode);
      });
      request.on('error', reject).end();
    });

  it.each(['..', '.', '%2e%2E', '%2E', '.%2e'])('is never that of another: %s', async (id) => {
    for (const [method, path] of [
      ['DELETE', `/books/_doc/${id}`],
      ['DELETE', `/books/_doc/${id}?refresh=true`],
      ['DELETE', `/books/_doc/${id}/`],
      ['DELETE', `/books/_doc/1/${id}/${id}`],
      ['POST', `/books/_doc/${id}/_close`],
      ['GET', `/books/_doc/${id}`],
      ['HEAD', `/books/_doc/${id}`],
      ['GET', `/${id}/_cluster/health`],
    ] as const) {
      expect(await status(method, path), `${method} ${path}`).toBe(400);
    }
    expect((await call('GET', '/books/_count')).body.count).toBe(40);
  });

  it('leaves an id of dots to bodies', async () => {
    await call('POST', '/dots/_bulk?refresh=true', '{"index":{"_id":".."}}\n{"n":1}\n{"index":{"_id":"1"}}\n{"n":2}\n');
    expect((await call('POST', '/dots/_mget', { ids: ['..'] })).body.docs[0]._source).toEqual({ n: 1 });
    await call('POST', '/dots/_bulk?refresh=true', '{"delete":{"_id":".."}}\n');
    expect((await call('GET', '/dots/_count')).body.count).toBe(1);
    await call('DELETE', '/dots');
  });
});

describe('a target that is no path', () => {
  const asked = (line: string, ...headers: string[]): Promise<string> =>
    talk(`${[line, ...headers, `Authorization: ApiKey ${server.apiKey}`, 'Connection: close'].join('\r\n')}\r\n\r\n`);
  const error = (text: string): unknown => {
    const [head = '', body = ''] = text.split('\r\n\r\n');
    expect(head).toMatch(/^HTTP\/1\.1 400 /u);
    expect(head).toMatch(/content-type: application\/json/iu);
    return JSON.parse(body);
  };

  it.each(['GET', 'OPTIONS', 'POST', 'DELETE'])('is refused as a path that is not known: %s *', async (method) => {
    const reason = `no handler found for uri [*] and method [${method}]`;
    expect(error(await asked(`${method} * HTTP/1.1`, 'Host: x'))).toEqual({ error: reason });
  });

  it('has no body for HEAD, and needs a key', async () => {
    expect(await asked('HEAD * HTTP/1.1', 'Host: x')).toMatch(/^HTTP\/1\.1 400 [^]*\r\n\r\n$/u);
    expect(await talk('GET * HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n')).toMatch(
      /^HTTP\/1\.1 401 [^]*security_exception/u,
    );
  });

  it('is refused with a sentence where no address can be made of it', async () => {
    for (const text of [
      await asked('GET http://[ HTTP/1.1', 'Host: x'),
      await asked('GET /%5Fcat HTTP/1.1', 'Host: a b'),
      await asked('OPTIONS /_search HTTP/1.1', 'Host: ['),
    ]) {
      const reason = 'the target and the Host header of the request are not a valid address';
      expect(error(text)).toMatchObject({ error: { type: 'bad_request_exception', reason }, status: 400 });
    }
  });
});

describe('YAML', () => {
  it.each([
    [{ accept: 'application/yaml' }, 'application/yaml'],
    [
      { accept: 'application/vnd.elasticsearch+yaml;compatible-with=8' },
      'application/vnd.elasticsearch+yaml;compatible-with=8',
    ],
    [
      { accept: 'application/vnd.elasticsearch+yaml;compatible-with=9' },
      'application/vnd.elasticsearch+yaml;compatible-with=9',
    ],
  ])('is answered for %j', async (headers, type) => {
    const answer = await call('GET', '/books/_search?sort=n&size=3', undefined, headers);
    expect(answer.headers['content-type']).toBe(type);
    expect(answer.text.startsWith('---\ntook: ')).toBe(true);
    const { hits } = parseYaml(answer.text) as { hits: { hits: { _source: object }[] } };
    const json = (await call('GET', '/books/_search?sort=n&size=3')).body;
    expect(hits).toEqual(json.hits);
  });

  it('is answered for format=yaml, with the same as in JSON', async () => {
    for (const path of ['/books', '/_cat/indices', '/missing']) {
      const yaml = await call('GET', `${path}?format=yaml`);
      expect(yaml.headers['content-type'], path).toBe('application/yaml');
      expect(parseYaml(yaml.text), path).toEqual((await call('GET', `${path}?format=json`)).body);
    }
    expect((await call('GET', '/books?format=cbor')).status).toBe(406);
    expect((await call('GET', '/books', undefined, { accept: 'application/smile' })).body).toEqual({
      error: 'Accept header [application/smile] is not supported',
      status: 406,
    });
  });

  it('is read, and answered in kind', async () => {
    const text = 'query:\n  range: {n: {gte: 38, lt: 9007199254740993}}\nsort: [n]\n_source: false\n';
    const answer = await call('POST', '/books/_search', text, { 'content-type': 'application/yaml' });
    expect(answer.headers['content-type']).toBe('application/yaml');
    expect(parseYaml(answer.text)).toMatchObject({ hits: { hits: [{ _id: '38' }, { _id: '39' }] } });
  });

  it.each([
    ['a: [1', 'malformed'],
    ['a: .inf', 'a number that JSON has not'],
    ['{a: 1, a: 2}', 'a key twice'],
    [
      `a: &a [x,x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b]\nd: [*c,*c,*c,*c]`,
      'a bomb',
    ],
    [`a: ${'['.repeat(50_000)}${']'.repeat(50_000)}`, 'too deep'],
    ['a: !!binary aGk=', 'a kind that JSON has not'],
  ])('is refused: %.30s (%s)', async (text) => {
    const { status, body } = await call('POST', '/books/_search', text, {
      'content-type': 'application/yaml',
      accept: 'application/json',
    });
    expect(status).toBe(400);
    expect(body.error.root_cause).toHaveLength(1);
  });

  it('is refused for now where too much of one key waits to be read', async () => {
    const body = `size: 0\nquery:\n  terms:\n    n:\n${'      - 1\n'.repeat(8_000)}`;
    const headers = { 'content-type': 'application/yaml', accept: 'application/json' };
    const { body: key } = await call('POST', '/_security/api_key', { name: 'other' });
    const own = Array.from({ length: 24 }, () => call('POST', '/books/_search', body, headers));
    const others = server.request('POST', '/books/_search', body, { headers, apiKey: key.encoded });
    expect((await others).status).toBe(200);
    const answers = await Promise.all(own);
    const refused = answers.find(({ status }) => status === 429);
    expect(refused?.headers['retry-after']).toBe('1');
    const reason =
      'rejected execution: [8] bodies in YAML of this caller wait for their turn: send it later, or as JSON';
    expect(refused?.body).toMatchObject({ error: { type: 'es_rejected_execution_exception', reason }, status: 429 });
    expect(answers.filter(({ status }) => status === 200).length).toBeGreaterThanOrEqual(8);
  });

  it('is read for no longer than the request may take', async () => {
    const headers = { 'content-type': 'application/yaml', accept: 'application/json' };
    const body = `query: &a [${'[1],'.repeat(20_000)}]\nb: [${Array(50).fill('*a').join()}]\n`;
    const { status, body: answer } = await call('POST', '/books/_search?timeout=1ms', body, headers);
    expect([status, answer.error.reason]).toEqual([408, expect.stringContaining('within the [timeout] of [1ms]')]);
  });

  it('is no sequence of documents', async () => {
    const answer = await call('POST', '/_bulk', 'a: 1\n', { 'content-type': 'application/yaml' });
    expect([answer.status, parseYaml(answer.text)]).toEqual([
      406,
      { error: 'Content-Type [YAML] does not support stream parsing. Use JSON or SMILE instead', status: 406 },
    ]);
  });
});

describe('media types', () => {
  it.each([
    [{ 'content-type': VENDORED }, 'if either one has requested a compatible version', 200],
    [{ 'content-type': VENDORED, accept: 'application/json' }, 'if either one has requested', 400],
    [{ 'content-type': 'application/json', accept: VENDORED }, 'if either one has requested', 400],
    [{ 'content-type': VENDORED, accept: 'application/vnd.elasticsearch+json;compatible-with=7' }, 'must match', 400],
    [{ 'content-type': VENDORED_9, accept: VENDORED_9 }, '', 200],
    [{ 'content-type': VENDORED_9, accept: `${VENDORED_9},text/plain` }, '', 200],
    [{ 'content-type': VENDORED_9 }, '', 200],
    [{ 'content-type': VENDORED_9, accept: VENDORED }, 'must match', 400],
    [{ 'content-type': VENDORED_9, accept: 'application/json' }, 'must match', 400],
    [{ 'content-type': 'application/vnd.elasticsearch+json;compatible-with=10', accept: VENDORED }, 'found 10', 400],
    [{ 'content-type': 'application/json; charset' }, 'invalid parameters for header', 400],
    [{ 'content-type': 'json' }, 'invalid media-type [json]', 400],
    [{ 'content-type': 'application/json; charset=UTF-8' }, '', 200],
  ])('%j', async (headers, sentence, status) => {
    const answer = await call('POST', '/books/_search', { size: 0 }, headers as Record<string, string>);
    expect(answer.status, answer.text).toBe(status);
    if (status === 400) {
      expect(answer.body.error.type).toBe('media_type_header_exception');
      expect(answer.body.error.caused_by.reason).toContain(sentence);
    }
  });
});

describe('encodings', () => {
  const body = Buffer.from(JSON.stringify({ query: { term: { n: 7 } } }));
  it.each([
    ['gzip', () => gzipSync(body)],
    ['x-gzip', () => gzipSync(body)],
    ['deflate', () => deflateSync(body)],
    ['deflate', () => deflateRawSync(body)],
    ['zstd', () => zstdCompress(body, 3)],
    ['identity', () => body],
  ])('of a body: %s', async (encoding, encoded) => {
    const answer = await call('POST', '/books/_search', Buffer.from(await encoded()), {
      'content-type': 'application/json',
      'content-encoding': encoding,
    });
    expect(answer.body.hits.hits.map(({ _id }: { _id: string }) => _id)).toEqual(['7']);
  });

  it.each(['gzip', 'deflate', 'zstd', 'br'])('of a malformed body: %s', async (encoding) => {
    const headers = { 'content-type': 'application/json', 'content-encoding': encoding };
    const answer = await call('POST', '/books/_search', Buffer.from('not that'), headers);
    expect([answer.status, answer.body.error.type]).toEqual([400, 'illegal_argument_exception']);
    expect(answer.text).toContain(encoding === 'br' ? 'Content-Encoding header [br] is not supported' : encoding);
  });

  it('are cut off where they get too long', async () => {
    const much = Buffer.alloc(300_000, ' ');
    for (const [encoding, bytes] of [
      ['gzip', gzipSync(much)],
      ['deflate', deflateSync(much)],
      ['zstd', await zstdCompress(much, 3)],
    ] as const) {
      const headers = { 'content-type': 'application/json', 'content-encoding': encoding };
      const answer = await call('POST', '/books/_search', Buffer.from(bytes), headers);
      expect([answer.status, answer.body.error.type], encoding).toEqual([413, 'content_too_long_exception']);
    }
  });

  it('refuse a frame of zstd that is cut off or wants too large a window', async () => {
    const frame = await zstdCompress(Buffer.alloc(50_000, 'abcdefgh'), 3);
    await expect(unpacked(frame.subarray(0, frame.length - 5))).rejects.toThrow();
    // The frame's header: magic, descriptor, and a window of 2^31 bytes.
    const wide = Buffer.from([0x28, 0xb5, 0x2f, 0xfd, 0x00, 0xa8, 0x01, 0x00, 0x00]);
    await expect(unpacked(wide)).rejects.toThrow();
    expect((await unpacked(frame)).length).toBe(50_000);
  });

  it.each([
    ['gzip', 'gzip', gunzipSync],
    ['deflate', 'deflate', inflateSync],
    ['gzip, deflate', 'gzip', gunzipSync],
    ['br, gzip;q=0.5, zstd;q=0.1', 'gzip', gunzipSync],
    ['gzip;q=0, deflate', 'deflate', inflateSync],
  ] as const)('of an answer for Accept-Encoding: %s', async (accepted, encoding, decode) => {
    const { headers, bytes } = await raw('/books/_search?size=40', { 'accept-encoding': accepted });
    expect(headers['content-encoding']).toBe(encoding);
    expect(headers['vary']).toBe('Accept-Encoding');
    expect(Number(headers['content-length'])).toBe(bytes.length);
    const plain = decode(bytes);
    expect(bytes.length).toBeLessThan(plain.length / 2);
    expect(JSON.parse(plain.toString())).toMatchObject({ hits: { total: { value: 40 } } });
  });

  it('of an answer in zstd, where a client likes it as well as others', async () => {
    const { headers, bytes } = await raw('/books/_search?size=40', { 'accept-encoding': 'gzip, zstd' });
    expect(headers['content-encoding']).toBe('zstd');
    expect(JSON.parse((await unpacked(bytes)).toString())).toMatchObject({ hits: { total: { value: 40 } } });
  });

  it('are not used for short answers, nor unasked', async () => {
    expect((await raw('/_cluster/health', { 'accept-encoding': 'gzip' })).headers['content-encoding']).toBeUndefined();
    for (const headers of [{}, { 'accept-encoding': 'identity' }, { 'accept-encoding': 'br' }]) {
      expect((await raw('/books/_search?size=40', headers)).headers['content-encoding']).toBeUndefined();
    }
  });
});

describe('parameters', () => {
  it.each([
    [
      '/books/_search?rooting=1',
      'request [/books/_search] contains unrecognized parameter: [rooting] -> did you mean [routing]?',
    ],
    [
      '/books/_refresh?ignore_unavailble=1&zz=1',
      'request [/books/_refresh] contains unrecognized parameters: [ignore_unavailble] -> did you mean [ignore_unavailable]?, [zz]',
    ],
    [
      '/_cat/indices?heath=1',
      'request [/_cat/indices] contains unrecognized parameter: [heath] -> did you mean [health]?',
    ],
    ['/books/_search?size=few', 'Failed to parse int parameter [size] with value [few]'],
    ['/books/_doc/%zz', "invalid escape sequence `%zz' at index 0 of: %zz"],
    ['/books/_doc/a%2', 'partial escape sequence at end of string: a%2'],
    ['/books/_doc/%ff', 'escape sequences that are not UTF-8 in: %ff'],
    ['/books/_search?source=%7B%7D', 'source and source_content_type parameters are required'],
    [
      '/books/_search?source=%7B%7D&source_content_type=text/plain',
      'Unknown value for source_content_type [text/plain]',
    ],
  ])('%s', async (path, reason) => {
    const { status, body } = await call('GET', path);
    expect([status, body.error.type, body.error.reason]).toEqual([400, 'illegal_argument_exception', reason]);
  });

  it('with a bad escape have an error of their own', async () => {
    const { status, body } = await call('GET', '/_cluster/health?pretty%');
    const reason = 'java.lang.IllegalArgumentException: unterminated escape sequence at end of string: pretty%';
    expect([status, body.error.type, body.error.reason]).toEqual([400, 'bad_parameter_exception', reason]);
  });

  it('count the last time they are given', async () => {
    expect((await call('GET', '/books/_search?size=1&size=2')).body.hits.hits).toHaveLength(2);
  });

  it('stand for a body, in either kind', async () => {
    const yaml = encodeURIComponent('query: {term: {n: 3}}');
    const answer = await call('GET', `/books/_count?source=${yaml}&source_content_type=application/yaml`);
    expect(answer.body.count).toBe(1);
  });

  it('thin out answers, items of a bulk too, but no errors; names with dots by backslashes', async () => {
    const error = await call('GET', '/missing/_search?filter_path=hits.total');
    expect(error.body).toMatchObject({ error: { type: 'index_not_found_exception' }, status: 404 });
    const missing = await call('GET', '/books/_doc/none?filter_path=found');
    expect([missing.status, missing.text]).toEqual([404, '{"found":false}']);
    const bulk = await call(
      'POST',
      '/books/_bulk?filter_path=items.*.status,-took',
      '{"index":{"_id":"x"}}\n{"n":"bad"}\n',
    );
    expect(bulk.text).toBe('{"items":[{"index":{"status":400}}]}');
    const dots = await call('GET', '/books/_settings?flat_settings=true&filter_path=*.settings.index%5C.uuid');
    expect(Object.keys(dots.body.books.settings)).toEqual(['index.uuid']);
  });

  it('trace errors, with their causes', async () => {
    const { body } = await call('POST', '/books/_search?error_trace=true', 'not json', {
      'content-type': 'application/json',
    });
    const { error } = body;
    expect(error.stack_trace).toMatch(
      /^x_content_parse_exception: .*\n\tat POST \/books\/_search\nCaused by: json_parse_exception: /s,
    );
    expect(error.root_cause[0].stack_trace).toBe(error.stack_trace.split('\nCaused by')[0]);
    expect(error.caused_by.stack_trace).toContain('json_parse_exception');
    expect((await call('GET', '/books/_count?error_trace')).text).not.toContain('stack_trace');
  });

  it('show statistics for people', async () => {
    const { body } = await call('GET', '/_nodes/stats?human');
    const [node] = Object.values(body.nodes as Record<string, any>);
    expect(node.process.mem.resident).toMatch(/^\d+(\.\d)?(mb|gb)$/);
    expect(Object.keys(node.process.mem as object).slice(0, 2)).toEqual(['resident', 'resident_in_bytes']);
    expect((await call('GET', '/books?human')).body.books.settings.index.creation_date_string).toMatch(/^\d{4}-.*Z$/);
    expect((await call('GET', '/_nodes/stats')).text).not.toContain('"resident"');
  });
});

describe('deprecated forms', () => {
  const warningsOf = ({ headers }: Answer): string[] =>
    [headers['warning'] ?? []]
      .flat()
      .join(', ')
      .split(/, (?=299)/)
      .filter((text) => text !== '');
  const said = (answer: Answer): string[] =>
    warningsOf(answer).map(
      (text) => /^299 Elasticsearch-8\.\d+\.\d+-(?:[a-f0-9]{7}|unknown) "(.*)"$/.exec(text)?.[1] ?? text,
    );

  it.each([
    [
      { query: { weighted_tokens: { v: { tokens: { a: 1 } } } } },
      ['weighted_tokens is deprecated and will be removed. Use sparse_vector instead.'],
    ],
    [
      {
        sub_searches: [
          { query: { match: { title: 'book' } } },
          { query: { weighted_tokens: { v: { tokens: { a: 1 } } } } },
        ],
        rank: { rrf: {} },
      },
      [
        'Deprecated field [sub_searches] used, replaced by [retriever]',
        'weighted_tokens is deprecated and will be removed. Use sparse_vector instead.',
        'Deprecated field [rank] used, replaced by [retriever]',
      ],
    ],
    [{ query: { match_all: {} } }, []],
  ])('of a search are named: %j', async (body, sentences) => {
    const answer = await call('POST', '/books/_search', body);
    expect(answer.status, answer.text).toBe(200);
    expect(said(answer).sort()).toEqual([...sentences].sort());
  });

  it('of every search among several are named once', async () => {
    const line = '{}\n{"query":{"weighted_tokens":{"v":{"tokens":{"a":1}}}}}\n';
    expect(said(await call('POST', '/books/_msearch', line.repeat(6)))).toHaveLength(1);
    expect(said(await call('POST', '/books/_msearch', '{}\n{}\n'))).toEqual([]);
  });

  it('of parameters and endpoints are named', async () => {
    expect(said(await call('GET', '/books/_search?ignore_throttled=true'))[0]).toContain(
      '[ignore_throttled] parameter',
    );
    expect(said(await call('PUT', '/_template/old', { index_patterns: ['old-*'] }))).toEqual([
      'Legacy index templates are deprecated in favor of composable templates.',
    ]);
    expect(said(await call('GET', '/_template/old'))).toEqual([]);
  });
});

describe('methods', () => {
  it('HEAD is GET without a body, wherever there is a GET', async () => {
    for (const path of ['/books/_search', '/_cat/indices', '/_cluster/health', '/_openapi.json']) {
      const answer = await call('HEAD', path);
      expect([answer.status, answer.text], path).toEqual([200, '']);
    }
    expect((await call('HEAD', '/missing/_search')).status).toBe(404);
    const refused = await call('HEAD', '/_bulk');
    expect([refused.status, refused.headers['allow']]).toEqual([405, 'PUT,POST']);
  });

  it('OPTIONS and what is not allowed name what is', async () => {
    const options = await server.request('OPTIONS', '/_bulk', undefined, { apiKey: null });
    expect([options.status, options.headers['allow'], options.text]).toEqual([200, 'PUT,POST', '']);
    const wrong = await call('DELETE', '/_bulk');
    expect([wrong.status, wrong.headers['allow']]).toEqual([405, 'PUT,POST']);
    expect((await call('GET', '/books/_search/')).status).toBe(200);
  });
});

describe('connections', () => {
  const head = (path: string): string =>
    `GET ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: ApiKey ${server.apiKey}\r\n\r\n`;

  it('are kept, and answer piled-up requests in order', async () => {
    const said = await talk(head('/books/_doc/1') + head('/books/_search?size=0') + head('/books/_doc/2'));
    expect(said.match(/HTTP\/1\.1 200 OK/g)).toHaveLength(3);
    expect(said.indexOf('"_id":"1"')).toBeLessThan(said.indexOf('"hits"'));
    expect(said.indexOf('"hits"')).toBeLessThan(said.indexOf('"_id":"2"'));
  });

  it.each([
    ['GARBAGE\r\n\r\n', 400, 'bad_request_exception'],
    [`GET / HTTP/1.1\r\nHost: x\r\nX-Long: ${'x'.repeat(20_000)}\r\n\r\n`, 400, 'too_long_http_header_exception'],
    [`GET /${'x'.repeat(20_000)} HTTP/1.1\r\nHost: x\r\n\r\n`, 400, 'too_long_http_header_exception'],
    [
      'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n',
      400,
      'bad_request_exception',
    ],
    ['GET / HTTP/1.1\r\nHost: x\r\nExpect: tea\r\n\r\n', 417, 'illegal_argument_exception'],
  ])('end with an answer to what is not HTTP: %.40s', async (text, status, type) => {
    const said = await talk(text);
    expect(said).toMatch(new RegExp(`^HTTP/1\\.1 ${String(status)} `));
    const body = JSON.parse(said.slice(said.indexOf('\r\n\r\n'))) as { error: { type: string }; status: number };
    expect([body.error.type, body.status]).toEqual([type, status]);
  });

  it('that end in the middle of a body leave nothing behind', async () => {
    const start = `POST /books/_doc HTTP/1.1\r\nHost: x\r\nAuthorization: ApiKey ${server.apiKey}\r\n`;
    await talk(`${start}Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n{"n":1`, 50);
    expect((await call('GET', '/books/_count')).body.count).toBe(40);
  });
});

describe('hostile keys', () => {
  it.each([
    ['a long one', Buffer.from(`id:${'x'.repeat(5000)}`).toString('base64')],
    ['no base64', '%%%not*base64%%%'],
    ['bytes that are no text', Buffer.from([0xff, 0xfe, 0x3a, 0x00]).toString('base64')],
    ['no colon', Buffer.from('nothing').toString('base64')],
    ['an empty one', ''],
    ['only a colon', Buffer.from(':').toString('base64')],
    ['a prototype', Buffer.from('__proto__:toString').toString('base64')],
  ])('%s', async (_, apiKey) => {
    const answer = await server.request('GET', '/_security/_authenticate', undefined, { apiKey });
    expect(answer.status).toBe(401);
    expect(answer.body.error).toMatchObject({ type: 'security_exception' });
    expect(answer.headers['www-authenticate']).toContain('ApiKey');
  });
});
