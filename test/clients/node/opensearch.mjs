// OpenSearch's client, unchanged: what it shares with Elasticsearch's works, and its own requests are refused by name.
import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';

import { Client } from '@opensearch-project/opensearch';

const { SPARROW_URL: node, SPARROW_API_KEY: apiKey } = process.env;
const client = new Client({ node, headers: { authorization: `ApiKey ${apiKey}` } });
const index = 'opensearch-client';
after(() => client.indices.delete({ index }, { ignore: [404] }));

const refused = async (request, sentence) =>
  assert.rejects(request, (error) => {
    assert.equal(error.statusCode, 400);
    assert.match(JSON.stringify(error.body), sentence);
    return true;
  });

describe('OpenSearch’s client', () => {
  it('makes indices, writes, reads, searches and scrolls', async () => {
    await client.indices.create({
      index,
      body: { mappings: { properties: { t: { type: 'text' }, n: { type: 'integer' } } } },
    });
    const datasource = Array.from({ length: 25 }, (_, n) => ({ t: `number ${n}`, n }));
    const onDocument = ({ n }) => ({ index: { _index: index, _id: String(n) } });
    const stats = await client.helpers.bulk({ datasource, onDocument, refreshOnCompletion: true });
    assert.deepEqual([stats.successful, stats.failed], [25, 0]);
    assert.equal((await client.get({ index, id: '7' })).body._source.n, 7);
    await client.update({ index, id: '7', body: { doc: { t: 'seven' } }, refresh: true });
    const { body } = await client.search({
      index,
      body: { query: { match: { t: 'seven' } }, aggs: { n: { sum: { field: 'n' } } } },
    });
    assert.deepEqual([body.hits.hits.map(({ _id }) => _id), body.aggregations.n.value], [['7'], 7]);
    const read = [];
    for await (const { documents } of client.helpers.scrollSearch({ index, size: 10 })) read.push(...documents);
    assert.equal(read.length, 25);
    const [first] = (await client.msearch({ body: [{ index }, { query: { term: { n: 3 } } }] })).body.responses;
    assert.equal(first.hits.total.value, 1);
    const { body: deleted } = await client.deleteByQuery({
      index,
      body: { query: { range: { n: { gte: 20 } } } },
      refresh: true,
    });
    assert.equal(deleted.deleted, 5);
    assert.equal((await client.count({ index })).body.count, 20);
    const { body: hidden } = await client.search({ index: 'opensearch-none' }, { ignore: [404] });
    assert.equal(hidden.status, 404);
  });

  it('is told which of its own forms there are not', async () => {
    const mappings = { properties: { v: { type: 'knn_vector', dimension: 2 } } };
    await refused(client.indices.create({ index: 'opensearch-knn', body: { mappings } }), /\[knn_vector\]/);
    const asked = (query) => client.search({ index, body: { query } });
    await refused(asked({ knn: { v: { vector: [1, 2], k: 1 } } }), /\[knn\]/);
    await refused(asked({ neural: { v: { query_text: 'x', model_id: 'm', k: 1 } } }), /unknown query \[neural\]/);
    await refused(asked({ hybrid: { queries: [] } }), /unknown query \[hybrid\]/);
    await refused(client.createPit({ index, keep_alive: '1m' }), /point_in_time/);
  });
});
