// What this server believes of indices is asked for again once it changed what their names stand for.
import type { EngineReply, EngineRequest } from '@sparrow-search/engine';
import { beforeEach, describe, expect, it } from 'vitest';

import {
  type Administration,
  changeAliases,
  createIndex,
  makeFromAnother,
  putMapping,
  putTemplate,
} from './indices.js';
import { Names } from './names.js';
import type { Asked } from './transport.js';

/** The requests, and when what is known was forgotten, in their order. */
let told: string[];
beforeEach(() => {
  told = [];
});

const transport = {
  ask: ({ method }: Asked) => {
    told.push(method);
    return Promise.resolve({ status: 200, body: Buffer.from('{}'), text: false });
  },
};
const context = {
  transport,
  product: { name: 'Elasticsearch' },
  names: new Names({} as never, transport as never),
  indices: {
    read: () => Promise.resolve([['a', { _meta: { sparrow: { templates: [] } } }]]),
    forget: () => told.push('forget'),
  },
  semantic: {
    checked: (given: unknown) => Promise.resolve(given),
    turns: { alone: (_: string, work: () => Promise<unknown>) => work() },
  },
} as unknown as Administration;
type Work = (context: Administration, request: EngineRequest, bytes: Uint8Array | undefined) => Promise<EngineReply>;

describe('what is believed of indices', () => {
  it.each<[string, Work, EngineRequest['op'], Readonly<Record<string, string>>, string]>([
    ['an index that is made', createIndex, 'create_index', { index: 'a' }, '{}'],
    ['a rollover', makeFromAnother, 'rollover', { index: 'a' }, '{}'],
    ['a clone', makeFromAnother, 'clone_index', { index: 'a', target: 'b' }, '{}'],
    ['a change of aliases', changeAliases, 'update_aliases', {}, '{"actions":[{"add":{"index":"a","alias":"b"}}]}'],
    ['an alias', changeAliases, 'put_alias', { index: 'a', name: 'b' }, ''],
    ['an alias that goes', changeAliases, 'delete_alias', { index: 'a', name: 'b' }, ''],
    ['an index template', putTemplate, 'put_index_template', { name: 't' }, '{"index_patterns":["a"],"template":{}}'],
    ['a component template', putTemplate, 'put_component_template', { name: 't' }, '{"template":{}}'],
  ])('is forgotten after %s', async (_, work, op, path, body) => {
    await work(context, { op, path, query: {} }, Buffer.from(body));
    expect(told.slice(1)).toEqual(['forget']);
  });

  it('is forgotten after a mapping', async () => {
    await putMapping(context, { op: 'put_mapping', path: { index: 'a' }, query: {} }, Buffer.from('{"properties":{}}'));
    expect(told).toEqual(['PUT', 'forget']);
  });
});
