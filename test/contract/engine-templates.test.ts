// Fields that come by dynamic templates, with their vectors and passages: one suite for every engine behind the routes.
import { randomBytes } from 'node:crypto';

import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { ENGINES } from '../support/engines.js';
import type { RunningServer } from '../support/server.js';

describe.each(ENGINES)('dynamic templates over the $name engine', ({ name, start }) => {
  const run = randomBytes(4).toString('hex');
  const of = (what: string): string => `templates-${run}-${what}`;
  let server: RunningServer;

  async function ask(method: string, path: string, body?: unknown, status?: number): Promise<any> {
    const answer = await server.request(method, path, body);
    if (status === undefined) expect(answer.status, `${method} ${path}: ${answer.text}`).toBeLessThan(300);
    else expect(answer.status, `${method} ${path}: ${answer.text}`).toBe(status);
    return answer.body;
  }
  const bulk = (index: string, ...documents: object[]): Promise<any> =>
    ask(
      'POST',
      `/${index}/_bulk?refresh=true`,
      documents.map((it, at) => `{"index":{"_id":"b${String(at)}"}}\n${JSON.stringify(it)}\n`).join(''),
    );
  const found = async (index: string, body: object): Promise<unknown[]> =>
    (await ask('POST', `/${index}/_search`, body)).hits.hits.map(({ _id }: { _id: string }) => _id);
  const meaning = (field: string): object => ({ query: { semantic: { field, query: 'animals of the sea' } } });
  const mapped = async (index: string): Promise<any> => (await ask('GET', `/${index}/_mapping`))[index].mappings;

  const templates = [
    { words: { match: '*_word', mapping: { type: 'keyword' } } },
    {
      meaning: {
        path_match: 'texts.*',
        path_unmatch: 'texts.no_*',
        match_mapping_type: 'string',
        mapping: { type: 'semantic_text', inference_id: '.sparse_encoder_model_2' },
      },
    },
    { vectors: { match: '*_vector', mapping: { type: 'dense_vector', similarity: 'dot_product', dims: 2 } } },
    { open: { match: '*_open', mapping: { type: 'dense_vector', similarity: 'l2_norm' } } },
  ];

  beforeAll(async () => {
    server = await start();
    await ask('PUT', `/${of('one')}`, { mappings: { dynamic_templates: templates } });
  });
  afterAll(async () => {
    await server.request('DELETE', `/${of('*')}`);
    await server.request('DELETE', `/_index_template/${of('template')}`);
    await server.stop();
  });

  it('make fields of vectors from the first document that has them', async () => {
    await ask('PUT', `/${of('one')}/_doc/1?refresh=true`, { a_vector: [1, 0], size_open: [1, 2, 3], b_word: 'x' });
    await bulk(of('one'), { a_vector: [0, 1], inner: { other_vector: [1, 0] } }, { a_vector: [0.6, 0.8] });
    const { dynamic_templates: shown, properties } = await mapped(of('one'));
    expect(shown).toEqual(templates);
    expect(properties.a_vector).toMatchObject({ type: 'dense_vector', similarity: 'dot_product', dims: 2 });
    expect(properties.inner.properties.other_vector).toMatchObject({ type: 'dense_vector', dims: 2 });
    expect(properties.size_open).toMatchObject({ type: 'dense_vector', similarity: 'l2_norm', dims: 3 });
    expect(properties.b_word.type).toBe('keyword');
    expect(await found(of('one'), { knn: { field: 'a_vector', query_vector: [0, 1], k: 2 } })).toEqual(['b0', 'b1']);
    expect(await found(of('one'), { knn: { field: 'inner.other_vector', query_vector: [1, 0], k: 2 } })).toEqual([
      'b0',
    ]);
  });

  it('make fields with passages, also of updates and pipelines', async () => {
    await ask('PUT', `/${of('one')}/_doc/2?refresh=true`, { texts: { body: 'a whale swims' } });
    expect(await found(of('one'), meaning('texts.body'))).toEqual(['2']);
    await ask('POST', `/${of('one')}/_update/2?refresh=true`, { doc: { texts: { more: 'a dolphin' }, n: 1 } });
    expect(await found(of('one'), meaning('texts.more'))).toEqual(['2']);
    await ask('PUT', `/_ingest/pipeline/${of('moves')}`, {
      processors: [{ rename: { field: 'given', target_field: 'texts.renamed' } }],
    });
    await ask('PUT', `/${of('one')}/_doc/3?refresh=true&pipeline=${of('moves')}`, { given: 'a shark' });
    await server.request('DELETE', `/_ingest/pipeline/${of('moves')}`);
    expect(await found(of('one'), meaning('texts.renamed'))).toEqual(['3']);
    const { properties } = await mapped(of('one'));
    expect(Object.keys(properties)).not.toContain('_sparrow');
    expect(properties.texts.properties.body).toMatchObject({ type: 'semantic_text' });
  });

  it('are not for what they leave out, for dates, or where an object takes no fields', async () => {
    await ask('PUT', `/${of('strict')}`, {
      mappings: { dynamic_templates: templates, properties: { texts: { dynamic: 'false', properties: {} } } },
    });
    await ask('PUT', `/${of('strict')}/_doc/1?refresh=true`, { texts: { body: 'a whale' } });
    expect((await mapped(of('strict'))).properties.texts.properties ?? {}).toEqual({});
    await ask('PUT', `/${of('one')}/_doc/4?refresh=true`, { texts: { no_meaning: 'a whale', at: '2026-01-02', n: 3 } });
    const { properties } = (await mapped(of('one'))).properties.texts;
    expect([properties.no_meaning.type, properties.at.type, properties.n.type]).toEqual(['text', 'date', 'long']);
  });

  it('come by index templates, to an index that a write makes, and to copies', async () => {
    await ask('PUT', `/_index_template/${of('template')}`, {
      index_patterns: [of('made-*')],
      priority: 901,
      template: { mappings: { dynamic_templates: templates } },
    });
    await bulk(of('made-1'), { texts: { body: 'a whale swims' }, a_vector: [1, 0] });
    expect(await found(of('made-1'), meaning('texts.body'))).toEqual(['b0']);
    await ask('POST', '/_reindex?refresh=true', { source: { index: of('made-1') }, dest: { index: of('made-2') } });
    expect(await found(of('made-2'), meaning('texts.body'))).toEqual(['b0']);
    expect(await found(of('made-2'), { knn: { field: 'a_vector', query_vector: [0, 1], k: 2 } })).toEqual(['b0']);
    // No index comes of a write that asks for an alias.
    const document = { texts: { body: 'a whale swims' } };
    const action = { _index: of('made-3'), _id: '1' };
    const isMissing = { type: 'index_not_found_exception' };
    for (const [params, line] of [
      ['?require_alias=true', { index: action }],
      ['', { index: { ...action, require_alias: true } }],
    ] as const) {
      const body = `${JSON.stringify(line)}\n${JSON.stringify(document)}\n`;
      const { errors, items } = await ask('POST', `/_bulk${params}`, body);
      expect([errors, items[0].index]).toMatchObject([true, { status: 404, error: isMissing }]);
    }
    const single = await ask('PUT', `/${of('made-3')}/_doc/1?require_alias=true`, document, 404);
    expect(single.error).toMatchObject(isMissing);
    await ask('HEAD', `/${of('made-3')}`, undefined, 404);
    // An item says more than its request.
    const asked = JSON.stringify({ index: { ...action, require_alias: false } });
    const made = await ask('POST', '/_bulk?require_alias=true&refresh=true', `${asked}\n${JSON.stringify(document)}\n`);
    expect(made.errors, JSON.stringify(made)).toBe(false);
    expect(await found(of('made-3'), meaning('texts.body'))).toEqual(['1']);
  });

  it.runIf(name === 'cluster')('are beside no script, which may add fields that nobody has prepared', async () => {
    await ask('PUT', `/${of('plain')}`, { mappings: { dynamic_templates: templates } });
    await ask('PUT', `/${of('plain')}/_doc/1?refresh=true`, { n: 1 });
    const script = { source: `ctx._source.a_vector = [1, 0]` };
    const reason = 'in an index whose dynamic templates bring vectors is not available over a cluster';
    const refused = { reason: expect.stringContaining(reason) as unknown };
    for (const [path, body] of [
      ['_update/1', { script }],
      ['_update_by_query', { script }],
    ] as const) {
      expect((await ask('POST', `/${of('plain')}/${path}`, body, 400)).error, path).toMatchObject(refused);
    }
    const lines = [{ update: { _id: '1' } }, { script }, { update: { _id: '1' } }, { doc: { n: 2 } }];
    const { items } = await ask('POST', `/${of('plain')}/_bulk`, lines.map((it) => `${JSON.stringify(it)}\n`).join(''));
    expect(items).toMatchObject([{ update: { status: 400, error: refused } }, { update: { status: 200 } }]);
    expect((await mapped(of('plain'))).properties).toEqual({ n: { type: 'long' } });
  });
});
