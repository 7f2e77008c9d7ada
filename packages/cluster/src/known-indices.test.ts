// A mapping is read once, however many parts of the engine need it, and an error of the cluster is not taken for a missing mapping.
import { beforeEach, describe, expect, it } from 'vitest';

import { type Given, answeringTransport } from '../../../test/support/answering-transport.js';

import { pipelineOf } from './default-pipelines.js';
import { DynamicFields } from './dynamic-fields.js';
import { FieldModels } from './field-models.js';
import { FinalPipelines } from './final-pipelines.js';
import type { Json } from './json.js';
import { KnownIndices, writeIndexOf } from './known-indices.js';
import type { Product } from './product.js';
import { SemanticFields } from './semantic-fields.js';
import type { Asked, Transport } from './transport.js';
import type { Turns } from './turns.js';
import { VectorFields } from './vector-fields.js';

const OWN = {
  final_pipeline: 'last',
  templates: [{ texts: { match: '*_text', mapping: { type: 'semantic_text' } } }],
  fields: { body: { type: 'semantic_text' }, v: { type: 'dense_vector', dims: 3 } },
};
const mapped = (own: Json = OWN): Json => ({
  mappings: { _meta: { sparrow: own }, properties: { body: { type: 'text' }, v: { type: 'knn_vector' } } },
});

/** What the cluster answers, by the method and path. */
let cluster: Record<string, Given>;
let sent: string[];
const transport = answeringTransport<Asked>(({ method, path }) => {
  sent.push(`${method} ${path}`);
  return cluster[`${method} ${path}`];
}) as unknown as Transport;
const product = { name: 'OpenSearch', knn: true } as Product;
const turns = { alone: (_: string, work: () => Promise<unknown>) => work() } as unknown as Turns;

let indices: KnownIndices;
let semantic: SemanticFields;
let vectors: VectorFields;
let finals: FinalPipelines;
let dynamic: DynamicFields;
beforeEach(() => {
  [cluster, sent] = [{}, []];
  indices = new KnownIndices(transport);
  semantic = new SemanticFields({} as never, transport, indices, product, turns);
  vectors = new VectorFields(indices, product);
  finals = new FinalPipelines(transport, indices, turns);
  dynamic = new DynamicFields({ transport, product, indices, semantic });
});

/** What a write wants to know of its index. */
async function ofWrites(name: string): Promise<unknown> {
  const [watched, known] = [await vectors.watched(name), await semantic.writtenTo(name)];
  return [await finals.of(name), await dynamic.mayBring(name), watched?.fields.size ?? 0, known?.index];
}
const ALL = ['last', true, 1, 'i'];
const NOTHING = [undefined, false, 0, undefined];

describe('what the cluster says of an index', () => {
  it('is asked for once by all who write, until somebody changes something', async () => {
    cluster = { 'GET /i/_mapping': { i: mapped() } };
    expect([await ofWrites('i'), await ofWrites('i')]).toEqual([ALL, ALL]);
    expect(sent).toEqual(['GET /i/_mapping']);
    cluster = { 'GET /i/_mapping': { i: mapped({}) } };
    expect(await ofWrites('i')).toEqual(ALL);
    indices.forget();
    expect(await ofWrites('i')).toEqual(NOTHING);
  });

  it('is asked for once by all who search', async () => {
    cluster = { 'GET /i*/_mapping': { i: mapped(), j: mapped({}) } };
    expect((await semantic.of('i*'))?.indices.map(({ index }) => index)).toEqual(['i']);
    expect([(await vectors.of('i*')).length, await finals.hasAny('i*')]).toEqual([1, true]);
    expect([await dynamic.mayBringAny('i*'), await vectors.paths('i*')]).toEqual([true, ['v']]);
    // One of them is about what is Sparrow's, one about whole mappings.
    expect(sent).toEqual(['GET /i*/_mapping', 'GET /i*/_mapping']);
  });

  it.each([403, 429, 503])('is not taken for nothing after %i, and asked for again', async (status) => {
    const works: readonly (() => Promise<unknown>)[] = [
      () => finals.of('i'),
      () => finals.hasAny('i'),
      () => dynamic.mayBring('i'),
      () => dynamic.mayBringAny('i'),
      () => vectors.watched('i'),
      () => vectors.of('i'),
      () => vectors.paths('i'),
      () => semantic.of('i'),
      () => semantic.writtenTo('i'),
      () => semantic.settle({ index: 'i' }, { mapping: {}, state: null }),
      () => semantic.using('e'),
      () => new FieldModels({} as never, transport, indices, turns).check('i', [{ field: 'f', id: 'm' }]),
      () => pipelineOf({ transport }, undefined, 'i'),
    ];
    cluster = { 'GET /i/_mapping': status, 'GET /*/_mapping': status };
    cluster['GET /i/_settings/index.default_pipeline,index.uuid'] = status;
    for (const work of works) await expect(work()).rejects.toMatchObject({ status, reason: 'not now' });
    expect(sent.filter((it) => !it.startsWith('GET'))).toEqual([]);
    cluster = { 'GET /i/_mapping': { i: mapped() } };
    expect(await ofWrites('i')).toEqual(ALL);
  });

  it.each([
    ['POST /_index_template/_simulate_index/n', {}],
    ['GET /_alias/n', { 'GET /n/_mapping': { one: mapped(), two: mapped() } }],
    ['GET /_data_stream/n', { 'GET /n/_mapping': { one: mapped(), two: mapped() } }],
  ])('is unknown where the cluster fails on the way: %s', async (failing, others) => {
    cluster = { ...others, [failing]: 503 };
    for (const work of [() => finals.of('n'), () => semantic.writtenTo('n'), () => dynamic.mayBring('n')])
      await expect(work()).rejects.toMatchObject({ status: 503, reason: 'not now' });
  });

  it('is nothing for a name that no index can have', async () => {
    cluster = { 'GET /N/_mapping': 400, 'POST /_index_template/_simulate_index/N': 400 };
    expect(await ofWrites('N')).toEqual(NOTHING);
  });

  it('is what a template brings until the index is there, which anybody may make', async () => {
    cluster = { 'POST /_index_template/_simulate_index/i': { template: mapped() } };
    expect(await ofWrites('i')).toEqual(ALL);
    cluster = { 'GET /i/_mapping': { i: mapped({}) } };
    expect(await ofWrites('i')).toEqual(NOTHING);
  });
});

describe('the index that a name writes to', () => {
  const final = { _meta: { sparrow: { final_pipeline: 'last' } } };
  const settings = (pipeline?: string) => ({
    settings: { 'index.uuid': 'u', ...(pipeline === undefined ? {} : { 'index.default_pipeline': pipeline }) },
  });

  it('is the one that date math stands for, also where it is yet to be made', async () => {
    const [name, path] = ['<i-{now/d}>', '/%3Ci-%7Bnow%2Fd%7D%3E'];
    cluster = {
      [`GET ${path}/_mapping`]: { 'i-2026': { mappings: final } },
      [`GET ${path}/_settings/index.default_pipeline,index.uuid`]: { 'i-2026': settings('first') },
    };
    expect([await finals.of(name), await pipelineOf({ transport }, undefined, name)]).toEqual(['last', 'first']);
    indices.forget();
    const missing = [404, { error: { type: 'index_not_found_exception', index: 'i-2026' } }] as const;
    cluster = {
      [`GET ${path}/_mapping`]: missing,
      [`GET ${path}/_settings/index.default_pipeline,index.uuid`]: missing,
      'POST /_index_template/_simulate_index/i-2026': {
        template: { mappings: final, settings: { index: { default_pipeline: 'first' } } },
      },
    };
    expect([await finals.of(name), await pipelineOf({ transport }, undefined, name)]).toEqual(['last', 'first']);
    expect(await indices.written(name)).toMatchObject({ index: 'i-2026', isMissing: true });
  });

  it('is the last index of the data stream that an alias writes to', async () => {
    cluster = {
      'GET /a/_mapping': { 's-2': { mappings: final }, 's-1': { mappings: {} }, t: { mappings: {} } },
      'GET /a/_settings/index.default_pipeline,index.uuid': {
        's-1': settings(),
        's-2': settings('first'),
        t: settings(),
      },
      'GET /_alias/a': { s: { aliases: { a: { is_write_index: true } } }, t: { aliases: { a: {} } } },
      'GET /_data_stream/s': { data_streams: [{ indices: [{ index_name: 's-1' }, { index_name: 's-2' }] }] },
    };
    expect([await finals.of('a'), await pipelineOf({ transport }, undefined, 'a')]).toEqual(['last', 'first']);
    // An alias of one data stream alone.
    Reflect.deleteProperty(cluster['GET /_alias/a'] as object, 't');
    expect(await writeIndexOf(transport, 'a', ['s-1', 's-2'])).toBe('s-2');
  });

  it('has no name that every object has', async () => {
    cluster = { 'GET /_alias/constructor': { one: { aliases: {} }, two: { aliases: {} } } };
    expect(await writeIndexOf(transport, 'constructor', ['one', 'two'])).toBeUndefined();
  });
});
