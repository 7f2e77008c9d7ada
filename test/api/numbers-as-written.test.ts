// Numbers of documents that do not fit into 64 bits, or that are written in another way than usual: what nobody changed keeps
// its bytes, and texts and keywords hold what was written.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { type RunningServer, startServer } from '../support/server.js';

let server: RunningServer;

beforeAll(async () => {
  server = await startServer({ args: ['--deploy-at-start', 'false'] });
});

afterAll(async () => {
  await server.stop();
});

const NUMBERS =
  '"price":1.10,"big":123456789012345678901234567890,"next":123456789012345678901234567891,"list":[1E5,{"deep":-0}]';
const DOCUMENT = `{${NUMBERS}}`;

/** The source of a document, byte by byte. */
async function source(path: string): Promise<string> {
  const answer = await server.request('GET', path);
  expect(answer.status, answer.text).toBe(200);
  return answer.text;
}

async function ok(method: string, path: string, body?: unknown): Promise<string> {
  const answer = await server.request(method, path, body);
  expect(answer.status, answer.text).toBeLessThan(300);
  return answer.text;
}

const OPEN = { mappings: { dynamic: false } };

describe('a number that nobody changed keeps its bytes', () => {
  beforeAll(async () => {
    await ok('PUT', '/kept', OPEN);
    await ok('PUT', '/copied', OPEN);
    await ok('PUT', '/_ingest/pipeline/adds', {
      processors: [{ set: { field: 'added', value: 7 } }, { rename: { field: 'price', target_field: 'cost' } }],
    });
  });

  it('in an update', async () => {
    await ok('PUT', '/kept/_doc/1', DOCUMENT);
    await ok('POST', '/kept/_update/1', '{"doc":{"x":1,"y":2.50}}');
    expect(await source('/kept/_source/1')).toBe(`{${NUMBERS},"x":1,"y":2.50}`);
    await ok('POST', '/kept/_update/new', `{"doc":${DOCUMENT},"doc_as_upsert":true}`);
    expect(await source('/kept/_source/new')).toBe(DOCUMENT);
  });

  it('and is not given the spelling of an equal one', async () => {
    const equal = '"a":1.0,"b":1.00,"c":[1.0,1e0,100000.0],"d":{"e":1E5}';
    await ok('PUT', '/kept/_doc/3', `{${equal}}`);
    await ok('POST', '/kept/_update/3', '{"doc":{"x":1}}');
    expect(await source('/kept/_source/3')).toBe(`{${equal},"x":1}`);
  });

  it('and one that changed in its last digit alone is changed', async () => {
    await ok('PUT', '/kept/_doc/2', '{ "id": 123456789012345678901234567890 }');
    expect(await ok('POST', '/kept/_update/2', '{"doc":{"id":123456789012345678901234567890}}')).toContain('"noop"');
    expect(await ok('POST', '/kept/_update/2', '{"doc":{"id":123456789012345678901234567891}}')).toContain('"updated"');
    expect(await source('/kept/_source/2')).toBe('{"id":123456789012345678901234567891}');
  });

  it('in _bulk, behind a pipeline, also where it moves', async () => {
    await ok('POST', '/_bulk?pipeline=adds', `{"index":{"_index":"kept","_id":"3"}}\n${DOCUMENT}\n`);
    const moved = NUMBERS.replace('"price":1.10,', '');
    expect(await source('/kept/_source/3')).toBe(`{${moved},"added":7,"cost":1.10}`);
  });

  it('in _update_by_query and _reindex, with and without a pipeline', async () => {
    await ok('PUT', '/kept/_doc/4?refresh=true', DOCUMENT);
    const query = { ids: { values: ['4'] } };
    await ok('POST', '/kept/_update_by_query?refresh=true', { query });
    expect(await source('/kept/_source/4')).toBe(DOCUMENT);
    await ok('POST', '/_reindex', { source: { index: 'kept', query }, dest: { index: 'copied' } });
    expect(await source('/copied/_source/4')).toBe(DOCUMENT);
    await ok('POST', '/_reindex', { source: { index: 'kept', query }, dest: { index: 'copied', pipeline: 'adds' } });
    expect(await source('/copied/_source/4')).toContain('"cost":1.10');
  });

  it('in _simulate', async () => {
    const given = '{"docs":[{"_source":{"price":1.10,"big":123456789012345678901234567890}}]}';
    const shown = await ok('POST', '/_ingest/pipeline/adds/_simulate', given);
    expect(shown).toContain('"big":123456789012345678901234567890');
    expect(shown).toContain('"cost":1.10');
  });

  it('in a source that the mapping filters', async () => {
    await ok('PUT', '/filtered', { mappings: { dynamic: false, _source: { excludes: ['list'] } } });
    await ok('PUT', '/filtered/_doc/1', DOCUMENT);
    expect(await source('/filtered/_source/1')).toBe(`{${NUMBERS.replace(/,"list".*/u, '')}}`);
  });
});

describe('a number that no double can hold', () => {
  it('is refused in whatever field, and taken as a text', async () => {
    await ok('PUT', '/huge', { mappings: { properties: { word: { type: 'keyword' } } } });
    for (const body of ['{"word":1e400}', '{"word":["a",-1e400]}', '{"other":{"deep":1e400}}']) {
      const answer = await server.request('PUT', '/huge/_doc/1', Buffer.from(body), {
        headers: { 'content-type': 'application/json' },
      });
      expect([answer.status, answer.body.error.reason]).toEqual([400, expect.stringContaining('number out of range')]);
    }
    await ok('PUT', '/huge/_doc/1?refresh=true', { word: '1e400' });
    expect(await ok('GET', '/huge/_count?q=word:1e400')).toContain('"count":1');
  });
});

describe('fields hold a number as it was written', () => {
  const properties = {
    k: { type: 'keyword', fields: { t: { type: 'text' } } },
    t: { type: 'text' },
    n: { type: 'long', fields: { k: { type: 'keyword' } } },
    o: { type: 'nested', properties: { k: { type: 'keyword' } } },
  };

  async function count(index: string, query: unknown): Promise<number> {
    const answer = await server.request('POST', `/${index}/_count`, { query });
    expect(answer.status, answer.text).toBe(200);
    return answer.body.count as number;
  }

  const cases: [string, unknown][] = [
    ['a keyword with a trailing zero', { term: { k: '1.10' } }],
    ['its multi-field', { match: { 'k.t': '1.10' } }],
    ['a text with 30 digits', { match: { t: '123456789012345678901234567890' } }],
    ['a keyword of a nested object', { nested: { path: 'o', query: { term: { 'o.k': '1E5' } } } }],
    ['a keyword below a number', { term: { 'n.k': '5.0' } }],
  ];

  it('when it is written, written again, copied, and read from the log', async () => {
    await ok('PUT', '/held', { mappings: { properties } });
    await ok('PUT', '/held-copy', { mappings: { properties } });
    await ok('PUT', '/held/_doc/1', '{"k":1.10,"t":[123456789012345678901234567890],"n":5.0,"o":[{"k":1E5}]}');
    await ok('POST', '/held/_update/1?refresh=true', '{"doc":{"z":1}}');
    await ok('POST', '/_reindex?refresh=true', { source: { index: 'held' }, dest: { index: 'held-copy' } });
    for (const index of ['held', 'held-copy']) {
      for (const [name, query] of cases) {
        expect(await count(index, query), `${index}: ${name}`).toBe(1);
      }
      expect(await count(index, { term: { k: '1.1' } })).toBe(0);
    }
  });

  it('and a long refuses what lies outside, down to the last digit', async () => {
    const put = async (value: string): Promise<number> =>
      (await server.request('PUT', '/held/_doc/long', `{"n":${value}}`)).status;
    expect(await put('-9223372036854775808')).toBeLessThan(300);
    expect(await put('9223372036854775807')).toBeLessThan(300);
    expect(await put('9223372036854775807.0')).toBeLessThan(300);
    // What lies beyond it by a fraction alone is its end.
    for (const value of ['9223372036854775807.9', '"9223372036854775807.9"', '"-9223372036854775808.5"']) {
      expect(await put(value), value).toBeLessThan(300);
    }
    const outside = [
      '"9223372036854775808"',
      '"9223372036854775808.5"',
      '"-9223372036854775809.5"',
      '-9223372036854775809',
      '9223372036854775808',
      '-9223372036854775809.0',
      '1e19',
      '18446744073709551616',
    ];
    for (const value of outside) {
      expect(await put(value), value).toBe(400);
    }
    expect(await ok('POST', '/held/_bulk', '{"index":{}}\n{"n":-9223372036854775809}\n')).toContain(
      'Value [-9223372036854775809] is out of range for a long',
    );
  });
});
