// What a key gets past the checks of names and bodies: nothing that the cluster would read otherwise than they do.
import { EngineError, type EngineRequest, type SearchEngine } from '@sparrow-search/engine';
import { beforeEach, describe, expect, it } from 'vitest';

import { bulk } from './bulk.js';
import { DynamicFields } from './dynamic-fields.js';
import { FieldModels } from './field-models.js';
import { FinalPipelines } from './final-pipelines.js';
import { forward } from './forward.js';
import { changeAliases, createIndex, putMapping, putTemplate } from './indices.js';
import { KnownIndices } from './known-indices.js';
import { Names } from './names.js';
import type { Given, Pipelines } from './pipelines.js';
import { shownId } from './points-in-time.js';
import type { Product } from './product.js';
import { Reads } from './reads.js';
import { readReindex } from './reindex.js';
import { Seals } from './seals.js';
import { SearchBody } from './search-body.js';
import { msearch, search } from './search.js';
import type { Asked, Transport } from './transport.js';
import type { Turns } from './turns.js';
import { SemanticFields } from './semantic-fields.js';
import { VectorFields } from './vector-fields.js';

const product: Product = {
  name: 'Elasticsearch',
  version: '8.19.0',
  major: 8,
  neuralSparse: false,
  knn: false,
  vectorEngine: 'lucene',
};
const LOOKUP = '{"terms":{"k":{"index":"private","id":"1","path":"k"}}}';

/** Refuses every name but `mine` and those that begin like it. */
const native = {
  execute: ({ path }: EngineRequest) =>
    (path['index'] ?? '').split(',').every((name) => name.startsWith('mine'))
      ? Promise.resolve({ status: 200, body: Buffer.from('{}') })
      : Promise.reject(new EngineError(403, Buffer.from('{"error":{"type":"security_exception","reason":"no"}}'))),
} as unknown as SearchEngine;

/** Why something is refused; nothing where it is not. */
function refusal(work: () => unknown): string {
  try {
    work();
    return '';
  } catch (error) {
    return (error as EngineError).reason;
  }
}

let sent: Asked[];
const transport = {
  ask: (asked: Asked) => {
    sent.push(asked);
    return Promise.resolve({ status: 200, body: Buffer.from('{}'), text: false });
  },
  json: () => Promise.resolve({ status: 200, body: {} }),
} as unknown as Transport;
/** Nobody else is there. */
const turns = { alone: (_: string, work: () => Promise<unknown>) => work() } as unknown as Turns;
const indices = new KnownIndices(transport);
const semantic = new SemanticFields(native, transport, indices, product, turns);
const context = {
  native,
  transport,
  product,
  names: new Names(native, transport),
  models: new FieldModels(native, transport, indices, turns),
  vectors: new VectorFields(indices, product),
  indices,
  semantic,
  finals: new FinalPipelines(transport, indices, turns),
  dynamic: new DynamicFields({ transport, product, indices, semantic }),
  seals: new Seals({ read: () => Promise.resolve({ text: 'secret' }) } as never, new Names(native, transport)),
};

function request(op: EngineRequest['op'], path: Readonly<Record<string, string>> = {}): EngineRequest {
  return { op, path, query: {}, action: 'indices:admin/aliases', rights: '{}' };
}

beforeEach(() => {
  sent = [];
});

describe('a key for one index', () => {
  it.each(['2024', 'true', '"private"'])('reads no document of an index that is written as %s', async (name) => {
    const body = Buffer.from(`{"docs":[{"_index":"mine","_id":"1"},{"_index":${name},"_id":"1"}]}`);
    await expect(new Reads(context).answer(request('mget', { index: 'mine' }), body)).rejects.toMatchObject({
      status: name.startsWith('"') ? 403 : 400,
    });
    expect(sent).toEqual([]);
  });

  it.each([
    '[{"add":{"indices":[2024],"alias":"mine-too"}}]',
    '[{"add":{"indices":[true],"alias":"mine-too"}}]',
    '{"add":{"index":"private","alias":"mine-too"}}',
    '[{"remove_index":{"indices":["mine",2024]}}]',
    '[{"add":{"index":"mine","alias":"mine-too"},"remove":{"index":"private","alias":"theirs"}}]',
  ])('gives no alias to another one: %s', async (actions) => {
    const body = Buffer.from(`{"actions":${actions}}`);
    // A number is checked as the name that the cluster takes it for; another form than the documented one is refused.
    const status = /2024|true/u.test(actions) ? 403 : 400;
    await expect(changeAliases(context, request('update_aliases'), body)).rejects.toMatchObject({ status });
    expect(sent).toEqual([]);
  });

  it('takes no alias of another one', async () => {
    const body = Buffer.from('{"actions":[{"add":{"index":"private","alias":"mine-too"}}]}');
    await expect(changeAliases(context, request('update_aliases'), body)).rejects.toMatchObject({ status: 403 });
    expect(sent).toEqual([]);
  });

  it('still changes its own', async () => {
    const body = Buffer.from('{"actions":[{"add":{"index":"mine","alias":"mine-too"}}]}');
    expect((await changeAliases(context, request('update_aliases'), body)).status).toBe(200);
    expect(sent).toHaveLength(1);
  });

  it('makes no field that looks into another one', async () => {
    const field = '{"runtime":{"r":{"type":"lookup","target_index":"private","input_field":"k","target_field":"k"}}}';
    const made = createIndex(context, request('create_index', { index: 'mine' }), Buffer.from(`{"mappings":${field}}`));
    await expect(made).rejects.toMatchObject({ status: 400 });
    await expect(
      putMapping(context, request('put_mapping', { index: 'mine' }), Buffer.from(field)),
    ).rejects.toMatchObject({ status: 400 });
    expect(sent).toEqual([]);
  });

  it.each([
    `{"query":${LOOKUP},"query":{"match_all":{}}}`,
    `{"query":${LOOKUP},"\\u0071uery":{"match_all":{}}}`,
    `{"retriever":{"standard":{"query":${LOOKUP},"query":{"match_all":{}}}}}`,
    `{"retriever":{"rrf":{"retrievers":[{"standard":{"query":${LOOKUP}}}, {}],"retrievers":[{"standard":{}},{"standard":{}}]}}}`,
    `{"retriever":{"rrf":{"filter":${LOOKUP},"filter":{"match_all":{}},"retrievers":[{"standard":{}},{"standard":{}}]}}}`,
  ])('hides no clause behind a second one of the same name: %s', (text) => {
    expect(refusal(() => new SearchBody(text, { product, restricted: true }))).toMatch(/Duplicate field/u);
  });

  it.each([
    `{"knn":{"field":"v","query_vector":[1],"filter":${LOOKUP}}}`,
    `{"query":{"knn":{"field":"v","query_vector":[1],"filter":[${LOOKUP}]}}}`,
    `{"retriever":{"knn":{"field":"v","query_vector":[1],"filter":{"bool":{"must":${LOOKUP}}}}}}`,
    `{"query":{"script_score":{"query":${LOOKUP},"script":{"source":"cosineSimilarity(params.q,'v')","params":{"q":[1]}}}}}`,
  ])('reads no other index by what neighbours have to pass: %s', async (text) => {
    for (const name of ['OpenSearch', 'Elasticsearch'] as const) {
      const over = { ...context, product: { ...product, name, knn: name === 'OpenSearch' } };
      await expect(search(over, request('search', { index: 'mine' }), Buffer.from(text))).rejects.toMatchObject({
        status: 403,
      });
    }
    expect(sent).toEqual([]);
  });

  it('sends no body among the parameters of a search', async () => {
    const header = JSON.stringify({
      index: 'mine',
      source: `{"query":${LOOKUP}}`,
      source_content_type: 'application/json',
    });
    const lines = Buffer.from(`${header}\n\n\n{}\n{}\n`);
    await expect(msearch(context, request('msearch'), lines)).rejects.toMatchObject({
      status: 400,
      reason: 'key [source] is not supported in the metadata section',
    });
    expect(sent).toEqual([]);
  });

  it('copies by no query that is hidden so', () => {
    const text = `{"source":{"index":"mine"},"source":{"index":"mine","query":${LOOKUP}},"dest":{"index":"mine-2"}}`;
    expect(refusal(() => readReindex(text))).toMatch(/Duplicate field 'source'/u);
  });

  it('hides no query in a text', () => {
    const phrase = { field: 't', collate: { query: { source: LOOKUP } } };
    const text = JSON.stringify({ suggest: { s: { text: 'x', phrase } } });
    expect(refusal(() => new SearchBody(text, { product, restricted: true }))).toMatch(/collate/u);
  });

  it('completes no text, as that shows documents that the filter of an alias hides', () => {
    const of = (field: string): string =>
      JSON.stringify({ suggest: { s: { prefix: 'x', completion: { [field]: 't' } } } });
    expect(refusal(() => new SearchBody(of('field'), { product, restricted: true }))).toMatch(
      /suggester \[completion\]/u,
    );
    expect(new SearchBody(of('field'), { product, restricted: false }).translated()).toBe(of('field'));
    // A field may have that name.
    expect(
      new SearchBody('{"query":{"match":{"completion":{"query":"x"}}}}', { product, restricted: true }),
    ).toBeDefined();
  });

  it('may have the same name in several objects, and texts that look like one', () => {
    const text = '{"query":{"bool":{"must":[{"term":{"a":"b"}},{"term":{"a":"{\\"a\\":1,\\"a\\":2}"}}]}},"size":1}';
    expect(new SearchBody(text, { product, restricted: true }).translated()).toBe(text);
  });
});

describe('a key for all indices', () => {
  const own = [
    '<.sparrow-{now/d}>',
    "<{now{'.sparrow-state'}}>",
    '<{now{.}}sparrow-state>',
    '<.sparro\\w-state>',
    '<.spar{now{[]}}row-state>',
  ];

  it.each(own)('has no name for one of Sparrow’s own: %s', async (name) => {
    await expect(context.names.check({ query: {} }, [name])).rejects.toMatchObject({ status: 400 });
  });

  it('has other date math', async () => {
    for (const name of ['<logs-{now/d{yyyy.MM.dd|+12:00}}>', '<sparrow-{now/d}>'])
      await context.names.check({ query: {} }, [name]);
  });

  it('gives no alias to what a pattern with date math stands for', async () => {
    const asked = { ...request('update_aliases'), rights: undefined };
    const body = Buffer.from('{"actions":[{"add":{"index":"<{now{.}}sparrow-*>","alias":"a"}}]}');
    await expect(changeAliases(context, asked, body)).rejects.toMatchObject({ status: 400 });
    expect(sent).toEqual([]);
  });

  const KEYS = '{"index":".sparrow-state","id":"api_keys","path":"text"}';
  const base64 = (text: string): string => Buffer.from(text).toString('base64');

  it.each([
    `{"query":{"terms":{"k":${KEYS}}}}`,
    `{"query":{"terms":{"k":${KEYS.replace('.sparrow', '\\u002esparrow')}}}}`,
    `{"query":{"t\\u0065rms":{"k":${KEYS.replace('"index"', '"inde\\u0078"')}}}}`,
    `{"query":{"more_like_this":{"like":[{"_index":".sparrow-state","_id":"api_keys"}]}}}`,
    `{"query":{"geo_shape":{"g":{"indexed_shape":${KEYS}}}}}`,
    `{"query":{"percolate":{"field":"q",${KEYS.slice(1, -1)}}}}`,
    `{"query":{"match_all":{}},"aggs":{"a":{"filter":{"terms":{"k":${KEYS}}}}}}`,
    `{"runtime_mappings":{"r":{"type":"lookup","target_index":".sparrow-state","input_field":"k","target_field":"_id"}}}`,
    `{"query":{"wrapper":{"query":"${base64(`{"terms":{"k":${KEYS}}}`)}"}}}`,
    `{"query":{"wrapper":{"query":"${base64(`{"wrapper":{"query":"${base64(`{"terms":{"k":${KEYS}}}`)}"}}`)}"}}}`,
    `{"query":{"wrapper":{"query":"${base64('---\nterms: {}')}"}}}`,
    `{"suggest":{"s":{"text":"x","phrase":{"field":"t","collate":{"query":{"source":"{}"}}}}}}`,
  ])('reads none of Sparrow’s own documents by a clause: %s', async (text) => {
    const asked = { ...request('search', { index: 'a' }), rights: undefined };
    await expect(search(context, asked, Buffer.from(text))).rejects.toMatchObject({ status: 400 });
    const lines = Buffer.from(`{"index":"a"}\n${text}\n`);
    const { body } = await msearch(context, { ...asked, op: 'msearch' }, lines);
    expect(JSON.parse(Buffer.from(body).toString())).toMatchObject({ responses: [{ status: 400 }] });
    expect(sent).toEqual([]);
  });

  it('says that a part is refused, and not that a text speaks of one', async () => {
    let refused = 0;
    const asked = { ...request('msearch'), refused: () => (refused += 1) };
    const search = (index: string): string => `{"index":"${index}"}\n{"query":{"term":{"t":"security_exception"}}}\n`;
    await msearch(context, asked, Buffer.from(search('mine')));
    expect(refused).toBe(0);
    await msearch(context, asked, Buffer.from(search('mine') + search('private')));
    expect(refused).toBe(1);
  });

  it('gives no alias a filter, and no field a lookup, that reads one of Sparrow’s own', async () => {
    const of = (op: EngineRequest['op']) => ({ ...request(op, { index: 'a', name: 'n' }), rights: undefined });
    const filter = `{"terms":{"k":${KEYS}}}`;
    const field =
      '{"runtime":{"r":{"type":"lookup","target_index":".sparrow-state","input_field":"k","target_field":"k"}}}';
    const all = [
      changeAliases(context, of('put_alias'), Buffer.from(`{"filter":${filter}}`)),
      changeAliases(
        context,
        of('update_aliases'),
        Buffer.from(`{"actions":[{"add":{"index":"a","alias":"b","filter":${filter}}}]}`),
      ),
      createIndex(context, of('create_index'), Buffer.from(`{"aliases":{"b":{"filter":${filter}}}}`)),
      putMapping(context, of('put_mapping'), Buffer.from(field)),
      putTemplate(
        context,
        of('put_index_template'),
        Buffer.from(`{"index_patterns":["a"],"template":{"mappings":${field}}}`),
      ),
      forward(context, of('field_caps'), Buffer.from(`{"index_filter":${filter}}`), new AbortController().signal),
    ];
    for (const one of await Promise.allSettled(all))
      expect(one).toMatchObject({ status: 'rejected', reason: { status: 400 } });
    expect(sent).toEqual([]);
  });

  it('reads documents of any other index by a clause, and fields by any name', async () => {
    const asked = { ...request('search', { index: 'a' }), rights: undefined };
    for (const text of [
      `{"query":${LOOKUP}}`,
      '{"query":{"bool":{"must":[{"term":{"index":".sparrow-state"}},{"match":{"collate":{"query":"_x"}}}]}}}',
      `{"query":{"wrapper":{"query":"${base64(LOOKUP)}"}}}`,
    ]) {
      await search(context, asked, Buffer.from(text));
      expect(sent.at(-1)).toMatchObject({ path: '/a/_search', body: text });
    }
  });

  it.each(['a/_delete_by_query?x', 'a/../b', 'a#b', 'ä b'])(
    'has no name that is more than a part of a path: %s',
    async (index) => {
      const signal = new AbortController().signal;
      for (const op of ['open_point_in_time', 'explain', 'search', 'count'] as const) {
        const asked = { ...request(op, { index, id: '1' }), rights: undefined };
        await (op === 'search' || op === 'count'
          ? search(context, asked, undefined)
          : new Reads(context).answer(asked, undefined));
      }
      for (const op of ['get_doc', 'refresh', 'cat_indices', 'delete_index'] as const)
        await forward(context, { ...request(op, { index, id: '1' }), rights: undefined }, undefined, signal);
      for (const { path } of sent) expect(path.split('/')).toContain(encodeURIComponent(index));
      expect(sent).toHaveLength(8);
    },
  );

  it('goes on with nothing that was not opened for a name that it may use', async () => {
    const { seals } = context;
    const asker = request('scroll');
    const forged = shownId({ expression: 'mine', seal: 'x'.repeat(22), id: 'abc' });
    for (const id of ['abc', forged, `${await seals.shown('mine', 'abc')}d`])
      await expect(seals.opened(asker, id)).rejects.toMatchObject({ status: 404 });
    for (const expression of ['*', 'mine,other*', 'a*,-b'])
      await expect(seals.opened(asker, await seals.shown(expression, 'abc'))).rejects.toMatchObject({ status: 400 });
    expect(await seals.opened({ ...asker, rights: undefined }, 'abc')).toMatchObject({ id: 'abc', expression: '*' });
  });

  it('writes to none of Sparrow’s own by a pipeline', async () => {
    const pipelines = {
      sync: () => Promise.resolve(),
      run: (_: string, given: readonly Given[]) =>
        Promise.resolve(given.map((it) => ({ ...it, kind: 'document', index: '.sparrow-state' }))),
    } as unknown as Pipelines;
    const asked = { ...request('bulk'), rights: undefined, query: { pipeline: 'p' } };
    const body = Buffer.from('{"index":{"_index":"mine","_id":"api_keys"}}\n{}\n');
    const reply = await bulk({ ...context, pipelines, models: {} as FieldModels }, asked, body);
    expect(JSON.parse(Buffer.from(reply.body).toString())).toMatchObject({ items: [{ index: { status: 400 } }] });
    expect(sent).toEqual([]);
  });
});
