// Passages in a cluster that somebody changed without Sparrow, and those that the cluster does not take: each is named, and none is found
// by a text that its document does not have.
import { randomBytes } from 'node:crypto';

import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { CLUSTER, NO_CLUSTER, NODE, OVER_CLUSTER } from '../support/engines.js';
import type { RunningServer } from '../support/server.js';

const SPARSE = '.sparse_encoder_model_2';
const run = randomBytes(4).toString('hex');
const of = (name: string) => `companions-${run}-${name}`;
const FIELD = {
  type: 'semantic_text',
  inference_id: SPARSE,
  chunking_settings: { strategy: 'word', max_chunk_size: 20, overlap: 5 },
};
const WHALE = 'The blue whale is the largest animal that has ever lived.';
const BREAD = 'Sourdough bread rises slowly because wild yeast works at its own pace.';
const UNREADABLE = 'the passages that are stored with the document cannot be read; index it again';

describe.skipIf(CLUSTER === undefined)(
  `passages in a cluster${CLUSTER === undefined ? ` (${NO_CLUSTER})` : ''}`,
  () => {
    let server: RunningServer;

    async function ask(method: string, path: string, body?: unknown, status = 200): Promise<any> {
      const answer = await server.request(method, path, body);
      expect(answer.status, `${method} ${path}: ${answer.text}`).toBe(status);
      return answer.body;
    }
    async function direct(method: string, path: string, body?: object): Promise<any> {
      const headers = { 'content-type': 'application/json' };
      const answer = await fetch(`${NODE}${path}`, { method, headers, body: JSON.stringify(body) });
      expect(answer.ok, await answer.clone().text()).toBe(true);
      return answer.json();
    }
    const search = (index: string, query: string, more: object = {}) =>
      server.request('POST', `/${of(index)}/_search`, { query: { semantic: { field: 't', query } }, ...more });
    const found = async (index: string, query: string): Promise<string[]> => {
      const { status, text, body } = await search(index, query);
      expect(status, text).toBe(200);
      return body.hits.hits.map(({ _id }: { _id: string }) => _id).sort();
    };

    beforeAll(async () => {
      server = await OVER_CLUSTER.start();
    }, 120_000);
    afterAll(async () => {
      for (const index of ['changed', 'lost', 'long']) await server.request('DELETE', `/${of(index)}`);
      await server.stop();
    });

    it('are gone or refused by name where somebody changed them, and come back with the next write', async () => {
      const index = of('changed');
      await ask('PUT', `/${index}`, { mappings: { properties: { t: FIELD, n: { type: 'integer' } } } });
      for (const id of ['a', 'b', 'c']) await ask('PUT', `/${index}/_doc/${id}?refresh=true`, { t: WHALE }, 201);
      expect(await found('changed', 'a whale')).toEqual(['a', 'b', 'c']);
      // One is written as another text without its passages, the passages of another one are no passages.
      await direct('PUT', `/${index}/_doc/a`, { t: BREAD });
      const _sparrow = { payload: 'AAAA', fields: { t: [{ tokens: { whale: 1.5 } }] } };
      await direct('PUT', `/${index}/_doc/b?refresh=true`, { t: WHALE, _sparrow });
      expect(await found('changed', 'a whale')).toEqual(['b', 'c']);
      expect(await found('changed', 'baking')).toEqual([]);
      const shown = await search('changed', 'a whale', { highlight: { fields: { t: {} } } });
      expect([shown.status, shown.body.error?.reason]).toEqual([400, UNREADABLE]);
      const updated = await ask('POST', `/${index}/_update/b`, { doc: { n: 1 } }, 400);
      expect(updated.error.reason).toBe(UNREADABLE);
      await ask('POST', `/${index}/_update/a?refresh=true`, { doc: { n: 1 } });
      await ask('PUT', `/${index}/_doc/b?refresh=true`, { t: WHALE, n: 1 });
      expect(await found('changed', 'baking')).toEqual(['a']);
      expect(await found('changed', 'a whale')).toEqual(['b', 'c']);
      const again = await search('changed', 'a whale', { highlight: { fields: { t: {} } } });
      expect(again.body.hits.hits.map(({ highlight }: any) => highlight.t)).toEqual([[WHALE], [WHALE]]);
    }, 120_000);

    it('are not searched where the cluster has lost what Sparrow wrote down about their field', async () => {
      const index = of('lost');
      await ask('PUT', `/${index}`, { mappings: { properties: { t: FIELD } } });
      await ask('PUT', `/${index}/_doc/1?refresh=true`, { t: WHALE }, 201);
      expect(await found('lost', 'a whale')).toEqual(['1']);
      await direct('PUT', `/${index}/_mapping`, { _meta: { theirs: 1 } });
      await expect.poll(async () => (await search('lost', 'a whale')).status).toBe(400);
      const { body } = await search('lost', 'a whale');
      expect(body.error.reason).toContain('Field [t] does not support semantic queries');
      await ask('PUT', `/${index}/_doc/2?refresh=true`, { t: BREAD }, 201);
      expect((await ask('GET', `/${index}/_doc/2`))._source).toEqual({ t: BREAD });
    }, 60_000);

    it('are refused with their document where the cluster takes no more, and nothing of it is there', async () => {
      const index = of('long');
      const settings = { 'index.mapping.nested_objects.limit': 2 };
      await ask('PUT', `/${index}`, { settings, mappings: { properties: { t: FIELD } } });
      const long = Array.from({ length: 3 }, () => `${WHALE} ${BREAD}`).join(' ');
      const lines = [{ index: { _id: 'long' } }, { t: long }, { index: { _id: 'short' } }, { t: BREAD }];
      const body = lines.map((it) => `${JSON.stringify(it)}\n`).join('');
      const { errors, items } = await ask('POST', `/${index}/_bulk?refresh=true`, body);
      expect(errors).toBe(true);
      expect(items.map(({ index: { _id, status } }: any) => [_id, status])).toEqual([
        ['long', 400],
        ['short', 201],
      ]);
      expect(JSON.stringify(items[0].index.error)).toMatch(/number of nested documents has exceeded .* limit/);
      const single = await ask('PUT', `/${index}/_doc/long`, { t: long }, 400);
      expect(JSON.stringify(single.error)).toContain('nested_objects.limit');
      // An update that makes the text too long leaves the document and its passages as they were.
      await ask('POST', `/${index}/_update/short?refresh=true`, { doc: { t: long } }, 400);
      await ask('GET', `/${index}/_doc/long`, undefined, 404);
      expect((await ask('GET', `/${index}/_doc/short`))._source).toEqual({ t: BREAD });
      expect(await found('long', 'baking')).toEqual(['short']);
      expect(await found('long', 'a whale')).toEqual([]);
    }, 60_000);
  },
);
