import { EngineError, type EngineRequest } from '@sparrow-search/engine';
import { describe, expect, it } from 'vitest';

import { BulkBody } from './bulk-body.js';
import { KnownIndices } from './known-indices.js';
import { companionMapping, reducedMapping, withDefinitions } from './passage-mappings.js';
import { bulkPassages, readChange, storedDocuments, withPassages } from './semantic-documents.js';
import type { Product } from './product.js';
import { SemanticFields, type SemanticIndex, type SemanticIndices } from './semantic-fields.js';
import { highlighting } from './semantic-highlight.js';
import { complete } from './semantic-updates.js';
import type { Transport } from './transport.js';

const SEMANTIC = { type: 'semantic_text', inference_id: 'e' };
const KNOWN: SemanticIndices = {
  indices: [{ index: 'i', mapping: {}, state: null, fields: { body: SEMANTIC } }],
  distinct: [],
  others: new Set(['words']),
};

function reasonOf(work: () => unknown): string {
  try {
    work();
  } catch (error) {
    return (error as { reason: string }).reason;
  }
  return '';
}

describe('what the native engine is told of a mapping', () => {
  it('is the semantic_text fields, and the fields that give them texts', () => {
    const properties = {
      body: SEMANTIC,
      title: { type: 'text', analyzer: 'mine', copy_to: ['body', 'other'] },
      other: { type: 'geo_shape' },
      inner: { properties: { words: { type: 'keyword', fields: { meaning: SEMANTIC, raw: { type: 'ip' } } } } },
      plain: { properties: { a: { type: 'long' } } },
    };
    expect(reducedMapping({ properties })).toEqual({
      properties: {
        body: SEMANTIC,
        title: { type: 'text', copy_to: ['body'] },
        inner: { properties: { words: { type: 'keyword', fields: { meaning: SEMANTIC } } } },
      },
    });
  });
});

describe('fields that are called as what every object has', () => {
  it('are fields like all others', () => {
    const constructor = { type: 'keyword' };
    const mapping = { properties: { body: { type: 'text' }, constructor, inner: { properties: { toString: {} } } } };
    const properties = { ...mapping.properties, body: SEMANTIC };
    expect(withDefinitions(mapping, { body: SEMANTIC })).toEqual({ properties });
    const settled = { ...SEMANTIC, model_settings: { task_type: 'sparse_embedding' } };
    const place = { properties: { prototype: { type: 'nested', properties: { tokens: { type: 'rank_features' } } } } };
    const made = companionMapping({ 'constructor.prototype': settled }, { name: 'OpenSearch' } as Product);
    expect(made).toMatchObject({ properties: { fields: { properties: { constructor: place } } } });
  });
});

describe('fields over an OpenSearch without k-NN', () => {
  it.each([
    ['sparse_embedding', undefined],
    ['text_embedding', '[body]'],
    ['hybrid_embedding', 'the cluster has no k-NN plugin'],
    [undefined, undefined],
  ])('of an endpoint that makes %s', async (task, reason) => {
    const mapping = { properties: { body: SEMANTIC } };
    const execute = ({ op }: EngineRequest): Promise<object> => {
      if (op === 'get_inference' && task === undefined) return Promise.reject(new EngineError(404, Buffer.from('{}')));
      const body = op === 'get_inference' ? { endpoints: [{ task_type: task }] } : { mapping };
      return Promise.resolve({ status: 200, body: Buffer.from(JSON.stringify(body)) });
    };
    const product = { name: 'OpenSearch', knn: false } as Product;
    const semantic = new SemanticFields({ execute } as never, {} as never, {} as never, product, {} as never);
    const checked = semantic.checked(mapping);
    if (reason === undefined) expect(await checked).toEqual(mapping);
    else
      await expect(checked).rejects.toMatchObject({ status: 400, reason: expect.stringContaining(reason) as unknown });
  });
});

describe('the indices that use an endpoint', () => {
  it('are not said to be none where the cluster does not say', async () => {
    const over = (status: number, answer: object): SemanticFields => {
      const transport = { json: () => Promise.resolve({ status, body: answer }) } as unknown as Transport;
      return new SemanticFields({} as never, transport, new KnownIndices(transport), {} as never, {} as never);
    };
    const mappings = { _meta: { sparrow: { fields: { body: SEMANTIC } } } };
    expect(await over(200, { i: { mappings } }).using('e')).toEqual(['i']);
    expect(await over(200, {}).using('e')).toEqual([]);
    await expect(over(503, { error: { type: 'x', reason: 'busy' } }).using('e')).rejects.toMatchObject({ status: 503 });
  });
});

describe('documents that are made while the change of a model begins', () => {
  const named = (index: string, state: string): SemanticIndex => ({ index, mapping: {}, state, fields: {} });

  /** Makes documents that say in which state of their index; the state of one of them changes after some calls. */
  function over(changing: string, after: number): { semantic: SemanticFields; forgotten: () => number } {
    let [calls, forgotten] = [0, 0];
    const execute = (_: EngineRequest, bytes: Uint8Array): Promise<object> => {
      calls += 1;
      const { state, documents } = JSON.parse(Buffer.from(bytes).toString()) as { state: string; documents: object[] };
      const body = JSON.stringify({ documents: documents.map(() => ({ source: null, companion: state })) });
      return Promise.resolve({ status: 200, body: Buffer.from(body) });
    };
    const writtenTo = (index: string): Promise<SemanticIndex> =>
      Promise.resolve(named(index, index === changing && calls >= after ? 'new' : 'old'));
    const semantic = { native: { execute }, writtenTo, forget: () => (forgotten += 1) };
    return { semantic: semantic as unknown as SemanticFields, forgotten: () => forgotten };
  }

  it('are made again, also those that were encoded before', async () => {
    const { semantic, forgotten } = over('i', 2);
    const made = await withPassages(
      semantic,
      named('i', 'old'),
      Array.from({ length: 130 }, () => ({ source: '{}' })),
    );
    expect(made).toHaveLength(130);
    expect(new Set(made.map((it) => JSON.stringify(it)))).toEqual(
      new Set([JSON.stringify({ kind: 'document', source: '{"_sparrow":"new"}' })]),
    );
    expect(forgotten()).toBe(1);
  });

  it('are made again where those of another index of the same request came in between', async () => {
    const { semantic } = over('a', 2);
    const lines = ['a', 'b'].map((it) => `{"index":{"_index":"${it}"}}\n{}\n`);
    const { items } = new BulkBody(Buffer.from(lines.join('')), undefined);
    const changed = new Map<number, string>();
    await bulkPassages(semantic, items, changed, new Map());
    expect([...changed.values()].map((it) => it.split('\n')[1])).toEqual(['{"_sparrow":"new"}', '{"_sparrow":"old"}']);
  });
});

describe('documents that land when the change of a model has begun', () => {
  const beside = { number: 1, parameters: { ...SEMANTIC, inference_id: 'new' } };
  const before: SemanticIndex = { index: 'i', mapping: {}, state: null, fields: { body: SEMANTIC } };
  const places = [
    { index: 'i', id: '1', routing: undefined },
    { index: 'other', id: '2', routing: undefined },
    { index: 'i', id: '3', routing: 'r' },
  ];

  /** Gives documents the vectors that they lack; returns the bodies of what was asked of the cluster. */
  async function sent(now: SemanticIndex, took: number): Promise<readonly string[]> {
    const asked: string[] = [];
    const execute = (_: EngineRequest, bytes: Uint8Array): Promise<object> => {
      const { state, documents } = JSON.parse(Buffer.from(bytes).toString()) as { state: object; documents: object[] };
      const body = JSON.stringify({
        documents: documents.map(() => ({ source: null, companion: Object.keys(state) })),
      });
      return Promise.resolve({ status: 200, body: Buffer.from(body) });
    };
    const ask = ({ path, body }: { path: string; body: string }): Promise<object> => {
      asked.push(body);
      const found = (id: string): object => ({
        _index: 'i',
        _id: id,
        found: true,
        _source: { n: 1 },
        _seq_no: 7,
        _primary_term: 1,
      });
      const written = (_id: string): object => ({ index: { _index: 'i', _id, status: 200 } });
      const answer = path === '/_mget' ? { docs: ['1', '3'].map(found) } : { items: ['1', '3'].map(written) };
      return Promise.resolve({ status: 200, body: Buffer.from(JSON.stringify(answer)), text: false });
    };
    const writtenTo = () => Promise.resolve(now);
    const semantic = { native: { execute }, writtenTo, writtenToNow: writtenTo, forget: () => undefined };
    const context = { semantic, transport: { ask } } as unknown as Parameters<typeof complete>[0];
    await complete(context, [before], performance.now() - took, places);
    return asked;
  }

  it('are written again with the vectors that they lack, if nobody else wrote them in between', async () => {
    const [read = '', write = ''] = await sent({ ...before, state: { body: { beside } } }, 1000);
    expect((JSON.parse(read) as { docs: { _id: string }[] }).docs.map(({ _id }) => _id)).toEqual(['1', '3']);
    const lines = write
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as object);
    const index = { _index: 'i', if_seq_no: 7, if_primary_term: 1 };
    expect(lines).toEqual([
      { index: { ...index, _id: '1' } },
      { _sparrow: ['body'], n: 1 },
      { index: { ...index, _id: '3', routing: 'r' } },
      { _sparrow: ['body'], n: 1 },
    ]);
  });

  it('stay as they are where nothing lacks, and where whoever fills the index sees them', async () => {
    expect(await sent({ ...before, fields: { body: { ...SEMANTIC, model_settings: {} } } }, 1000)).toEqual([]);
    expect(await sent({ ...before, state: { body: { beside } } }, 0)).toEqual([]);
  });
});

describe('an update of a document with passages', () => {
  const none = () => undefined;

  it('is read as it is written: numbers keep their digits', () => {
    const change = readChange(
      '{"doc": {"n": 12345678901234567890},\n "doc_as_upsert": true, "detect_noop": false}',
      none,
    );
    expect(change).toMatchObject({ doc: '{"n": 12345678901234567890}', detectNoop: false, retries: 0 });
    expect(change.upsert).toBe(change.doc);
    const action: Readonly<Record<string, unknown>> = { retry_on_conflict: '3', if_seq_no: 4, if_primary_term: 1 };
    expect(readChange('{"doc":{},"upsert":{"a":1}}', (name) => action[name])).toMatchObject({
      upsert: '{"a":1}',
      retries: 3,
      required: { if_seq_no: 4, if_primary_term: 1 },
    });
  });

  it.each([
    ['[]', 'expected an object'],
    ['{"script":{"source":""}}', 'a script in an update'],
    ['{"doc":{},"nope":1}', 'unknown field [nope]'],
    ['{"doc":1}', 'failed to parse field [doc]'],
    ['{"upsert":{}}', 'script or doc is missing'],
    ['{"doc":{},"_source":"a*"}', '[_source] of an update'],
  ])('refuses %s', (body, sentence) => {
    expect(reasonOf(() => readChange(body, none))).toContain(sentence);
  });

  it('reads what is stored, and what is not there', () => {
    const docs = [
      '{"_index":"i","_id":"1","_version":3,"_seq_no":7,"_primary_term":2,"found":true,"_source":{"n":1.10},"fields":{"p":["AQ=="]}}',
      '{"_index":"i","_id":"2","found":false}',
      '{"_index":"i","_id":"3","_version":1,"_seq_no":0,"_primary_term":1,"found":true,"_source":{}}',
    ];
    expect(storedDocuments(`{"docs":[${docs.join(',')}]}`, 'p')).toEqual([
      { source: '{"n":1.10}', payload: 'AQ==', version: 3, seqNo: 7, term: 2, index: 'i' },
      undefined,
      { source: '{}', payload: undefined, version: 1, seqNo: 0, term: 1, index: 'i' },
    ]);
  });
});

describe('a highlight section', () => {
  it('is taken apart into words and passages', () => {
    const order = { order: 'score' };
    expect(highlighting(KNOWN, { ...order, fields: { body: { number_of_fragments: 1 }, words: {} } })).toEqual({
      rest: ['words'],
      passages: { ...order, fields: [{ body: { number_of_fragments: 1 } }] },
    });
    expect(highlighting(KNOWN, { fields: [{ 'b*': {} }] })).toEqual({
      rest: ['b*'],
      passages: { fields: [{ 'b*': {} }] },
    });
    // Of other fields, this type shows nothing, and the cluster does not know it.
    expect(highlighting(KNOWN, { type: 'semantic', fields: { words: {}, body: {} } }).rest).toEqual([]);
    expect(highlighting(KNOWN, { fields: { words: {} } }).passages).toBeUndefined();
    const other = { fields: { body: { highlight_query: { match_all: {} } } } };
    expect(reasonOf(() => highlighting(KNOWN, other))).toContain('[highlight_query]');
    // The other fields may have queries of their own beside passages.
    const words = { words: { highlight_query: { match_all: {} } } };
    expect(highlighting(KNOWN, { fields: { ...words, body: {} } }).rest).toEqual(['words']);
  });
});
