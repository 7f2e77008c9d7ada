// Which index gets the fields that documents bring by dynamic templates of Sparrow's, and which fields these are.
import { beforeEach, describe, expect, it } from 'vitest';

import { type Given, answeringTransport } from '../../../test/support/answering-transport.js';

import { DynamicFields } from './dynamic-fields.js';
import type { Json } from './json.js';
import { KnownIndices } from './known-indices.js';
import type { Product } from './product.js';
import type { SemanticFields } from './semantic-fields.js';
import type { Asked, Transport } from './transport.js';

const SEMANTIC = { type: 'semantic_text', inference_id: 'e' };
const OWN = [{ meaning: { match: '*_text', match_mapping_type: 'string', mapping: SEMANTIC } }];

/** A mapping of the cluster, of an index that was made with such templates, or of another one. */
function mapped(templates: readonly Json[] | null = OWN, more: Json = {}): Json {
  const meta = templates === null ? {} : { _meta: { sparrow: { templates, fields: {} } } };
  return { mappings: { ...meta, _source: { excludes: ['_sparrow'] }, ...more } };
}

/** What the cluster answers, by the method and path. */
let cluster: Record<string, Given>;
let sent: Asked[];
const transport = answeringTransport<Asked>((asked) => {
  sent.push(asked);
  return cluster[`${asked.method} ${asked.path}`] ?? (asked.method === 'PUT' ? {} : undefined);
}) as unknown as Transport;

/** Names of the indices that templates have made, and what happens when one is made. */
let made: string[];
let make: () => void;
const semantic = {
  turns: { alone: (_: string, work: () => Promise<unknown>) => work() },
  checked: (given: unknown) => Promise.resolve(given),
  made: (name: string) => {
    made.push(name);
    make();
    return Promise.resolve();
  },
} as unknown as SemanticFields;

let indices: KnownIndices;
let dynamic: DynamicFields;
beforeEach(() => {
  [cluster, sent, made, make] = [{}, [], [], () => undefined];
  const product = { name: 'OpenSearch' } as Product;
  indices = new KnownIndices(transport);
  dynamic = new DynamicFields({ transport, product, indices, semantic });
});

const prepare = (name: string, document: string | object): Promise<void> =>
  dynamic.prepare(name, () => [typeof document === 'string' ? document : JSON.stringify(document)]);
const puts = (): readonly string[] => sent.filter(({ method }) => method === 'PUT').map(({ path }) => path);

const fields = (): Json => JSON.parse(String(sent.findLast(({ method }) => method === 'PUT')?.body ?? '{}')) as Json;

describe('the index that gets fields', () => {
  it('is the last one of a data stream, even where it is not the last one of an answer', async () => {
    const indices = [{ index_name: 's-1' }, { index_name: 's-2' }];
    cluster = {
      'GET /s/_mapping': { 's-2': mapped(), 's-1': mapped(null) },
      'GET /_data_stream/s': { data_streams: [{ indices }] },
      'GET /s-2/_mapping': { 's-2': mapped() },
    };
    await prepare('s', { a_text: 'x' });
    expect(puts()).toEqual(['/s-2/_mapping']);
  });

  it('is the one of an alias that takes writes', async () => {
    cluster = {
      'GET /a/_mapping': { one: mapped(), two: mapped(null) },
      'GET /_alias/a': { one: { aliases: { a: { is_write_index: true } } }, two: { aliases: { a: {} } } },
      'GET /one/_mapping': { one: mapped() },
    };
    await prepare('a', { a_text: 'x' });
    expect(puts()).toEqual(['/one/_mapping']);
  });

  it('puts no field where an alias takes no writes, or its write index has no such templates', async () => {
    cluster = {
      'GET /a/_mapping': { one: mapped(null), two: mapped() },
      'GET /_alias/a': { one: { aliases: { a: {} } }, two: { aliases: { a: {} } } },
    };
    await prepare('a', { a_text: 'x' });
    cluster['GET /_alias/a'] = { one: { aliases: { a: { is_write_index: true } } }, two: { aliases: { a: {} } } };
    indices.forget();
    await prepare('a', { a_text: 'x' });
    expect(puts()).toEqual([]);
  });

  it('is made first where a template brings it, and is not believed to be missing', async () => {
    cluster = { 'POST /_index_template/_simulate_index/n': { template: mapped() } };
    make = () => (cluster['GET /n/_mapping'] = { n: mapped() });
    await prepare('n', { b: 1 });
    expect(made).toEqual([]);
    await prepare('n', { a_text: 'x' });
    expect([made, puts()]).toEqual([['n'], ['/n/_mapping']]);
  });

  it('is not made where only an alias may be written to', async () => {
    const refused = {
      status: 404,
      reason: expect.stringContaining('[require_alias] request flag is [true]') as unknown,
    };
    cluster = { 'POST /_index_template/_simulate_index/n': { template: mapped() } };
    await expect(dynamic.prepare('n', () => ['{"a_text":"x"}'], true)).rejects.toMatchObject(refused);
    // One that was there a moment ago is not made again either.
    cluster['GET /n/_mapping'] = { n: mapped() };
    expect(await dynamic.mayBring('n')).toBe(true);
    Reflect.deleteProperty(cluster, 'GET /n/_mapping');
    await expect(dynamic.prepare('n', () => ['{"a_text":"x"}'], true)).rejects.toMatchObject(refused);
    expect([made, puts()]).toEqual([[], []]);
  });

  it('is looked for again at once where there was none', async () => {
    await prepare('n', { a_text: 'x' });
    cluster['GET /n/_mapping'] = { n: mapped() };
    await prepare('n', { a_text: 'x' });
    expect(puts()).toEqual(['/n/_mapping']);
  });
});

describe('the fields that a document brings', () => {
  const taking = (more: Json = {}, templates: readonly Json[] = OWN): void => {
    cluster = { 'GET /i/_mapping': { i: mapped(templates, more) } };
  };
  const ALL = [{ all: { match_mapping_type: 'string', mapping: SEMANTIC } }];
  const properties = (): unknown => fields()['properties'];
  const text = { type: 'text', index: false };

  it('are where their names and dotted names say', async () => {
    taking({ properties: { flat: { type: 'flattened' }, closed: { dynamic: 'false', properties: {} } } });
    await prepare('i', {
      'a.b.c_text': 'x',
      a: [{ d_text: 'y' }],
      flat: { e_text: 'z' },
      closed: { f_text: 'z' },
      n: 1,
    });
    const b = { type: 'object', properties: { c_text: text } };
    expect(properties()).toMatchObject({ a: { type: 'object', properties: { b, d_text: text } } });
    expect(Object.keys(properties() as object).filter((name) => !name.startsWith('_'))).toEqual(['a']);
  });

  it.each(['constructor', 'toString', 'hasOwnProperty'])('may be called %s', async (name) => {
    taking({ properties: { inner: { properties: {} } } }, ALL);
    await prepare('i', { [name]: 'x', inner: { [name]: 'y' } });
    expect(properties()).toMatchObject({ [name]: text, inner: { properties: { [name]: text } } });
  });

  it.each(['{"__proto__":"x"}', '{"a":{"__proto__":"x"}}', '{"__proto__.a":"x"}'])(
    'have no name that cannot be written down: %s',
    async (document) => {
      taking({}, ALL);
      await expect(prepare('i', document)).rejects.toMatchObject({ status: 400 });
    },
  );

  it('are 20 levels deep at most, however they are written', async () => {
    const path = (levels: number): string => Array.from({ length: levels }, () => 'a').join('.');
    const nested = (levels: number): Json => (levels === 0 ? { a: 'x' } : { a: nested(levels - 1) });
    taking({}, ALL);
    await prepare('i', { [path(20)]: 'x' });
    await prepare('i', nested(19));
    expect(puts()).toHaveLength(2);
    const refused = { status: 400, reason: 'The depth of the field has exceeded the allowed limit of [20].' };
    await expect(prepare('i', { [path(21)]: 'x' })).rejects.toMatchObject(refused);
    await expect(prepare('i', nested(20))).rejects.toMatchObject(refused);
    await expect(prepare('i', { [path(500_000)]: 'x' })).rejects.toMatchObject(refused);
  });

  it('are not looked for in depths that take no fields', async () => {
    taking({ dynamic: false }, ALL);
    await prepare('i', { 'a.b': 'x', [Array.from({ length: 500_000 }, () => 'a').join('.')]: 'x' });
    expect(puts()).toEqual([]);
  });
});
