// What the Elasticsearch output of Logstash sends, after its sources (logstash-output-elasticsearch 12): a Ruby program, which does not run here.
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';

const { SPARROW_URL: url, SPARROW_API_KEY: key } = process.env;
// `api_key => "id:api_key"` of the plugin's settings.
const authorization = `ApiKey ${key}`;

async function send(method, path, body, more = {}) {
  const headers = { authorization, 'user-agent': 'logstash/9.2.0', 'content-type': 'application/json', ...more };
  const response = await fetch(url + path, { method, headers, ...(body !== undefined && { body }) });
  const text = await response.text();
  return { status: response.status, headers: response.headers, body: text === '' ? undefined : JSON.parse(text) };
}

const events = (action, ...list) =>
  list.map((event) => `${JSON.stringify({ create: action })}\n${JSON.stringify(event)}\n`).join('');
const BULK = '/_bulk?filter_path=errors,items.*.error,items.*.status';

describe('Logstash’s output', () => {
  const clean = async () => {
    for (const index of ['logs-generic-default', 'logstash-2026.11.29']) await send('DELETE', `/${index}`);
    await send('DELETE', '/_index_template/logstash');
  };
  before(clean);
  after(clean);

  it('finds an Elasticsearch of version 8 with an active license', async () => {
    assert.equal((await send('HEAD', '/')).status, 200);
    const root = await send('GET', '/');
    assert.equal(root.headers.get('x-elastic-product'), 'Elasticsearch');
    assert.match(root.body.version.number, /^8\./);
    assert.notEqual(root.body.version.build_flavor, 'serverless');
    const { license } = (await send('GET', '/_license')).body;
    assert.deepEqual([license.status, license.type], ['active', 'basic']);
    // With `sniffing => true`.
    const [node] = Object.values((await send('GET', '/_nodes/http')).body.nodes);
    assert.match(node.http.publish_address, /:\d+$/);
  });

  it('installs its template once, and writes into indices of a pattern', async () => {
    assert.equal((await send('HEAD', '/_index_template/logstash')).status, 404);
    const text = { type: 'text', norms: false };
    const template = {
      index_patterns: 'logstash-*',
      version: 80001,
      template: {
        settings: { 'index.refresh_interval': '5s', number_of_shards: 1 },
        mappings: {
          dynamic_templates: [
            { message_field: { path_match: 'message', match_mapping_type: 'string', mapping: text } },
            {
              string_fields: {
                match: '*',
                match_mapping_type: 'string',
                mapping: { ...text, fields: { keyword: { type: 'keyword', ignore_above: 256 } } },
              },
            },
          ],
          properties: {
            '@timestamp': { type: 'date' },
            '@version': { type: 'keyword' },
            geoip: {
              dynamic: true,
              properties: {
                ip: { type: 'ip' },
                location: { type: 'geo_point' },
                latitude: { type: 'half_float' },
                longitude: { type: 'half_float' },
              },
            },
          },
        },
      },
      priority: 200,
      _meta: { description: 'index template for logstash-output-elasticsearch' },
    };
    assert.equal((await send('PUT', '/_index_template/logstash', JSON.stringify(template))).status, 200);
    assert.equal((await send('HEAD', '/_index_template/logstash')).status, 200);
    const event = { '@timestamp': '2026-11-29T12:00:00.000Z', '@version': '1', message: 'a line', host: { name: 'h' } };
    const action = { _id: null, _index: 'logstash-2026.11.29', routing: null };
    const lines = `${JSON.stringify({ index: action })}\n${JSON.stringify(event)}\n`;
    assert.deepEqual((await send('POST', BULK, lines)).body, { errors: false, items: [{ index: { status: 201 } }] });
    const { mappings } = (await send('GET', '/logstash-2026.11.29/_mapping')).body['logstash-2026.11.29'];
    assert.deepEqual(mappings.properties.message, { type: 'text', norms: false });
    assert.equal(mappings.properties.host.properties.name.fields.keyword.ignore_above, 256);
  });

  it('writes into the name of a data stream, which is an index here, and is told what was refused', async () => {
    const action = { _id: null, _index: 'logs-generic-default', routing: null };
    const stream = { type: 'logs', dataset: 'generic', namespace: 'default' };
    const event = { '@timestamp': '2026-11-29T12:00:00.000Z', message: 'a line', n: 1, data_stream: stream };
    const { body } = await send('POST', BULK, events(action, event, { ...event, n: 'no number' }));
    assert.equal(body.errors, true);
    assert.deepEqual(
      body.items.map(({ create }) => create.status),
      [201, 400],
    );
    assert.match(body.items[1].create.error.reason, /failed to parse field \[n\]/);
    assert.equal((await send('POST', '/logs-generic-default/_refresh')).status, 200);
    assert.equal((await send('GET', '/logs-generic-default/_count')).body.count, 1);
    assert.equal((await send('GET', '/logs-generic-default/_settings')).status, 200);
    assert.deepEqual((await send('GET', '/_data_stream')).body, { data_streams: [] });
  });
});
