// Templates, open and closed indices, blocks, merges, and an index that cannot be opened, against the real engine.
import { appendFile, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { type Answer, type RunningServer, startServer } from '../support/server.js';

const ARGS = ['--deploy-at-start', 'false'];
let server: RunningServer;
const call = (method: string, path: string, body?: unknown): Promise<Answer> => server.request(method, path, body);
const ACK = { acknowledged: true };

beforeAll(async () => {
  server = await startServer({ args: ARGS });
});

afterAll(async () => {
  await server.stop();
});

describe('index templates', () => {
  it('make an index, by request or by a write, from components, themselves and the request', async () => {
    const component = {
      template: {
        settings: { number_of_replicas: 0, 'index.refresh_interval': '5s' },
        mappings: { properties: { a: { type: 'keyword' }, o: { properties: { x: { type: 'long' } } } } },
        aliases: { 'all-{index}': {} },
      },
      version: 3,
    };
    expect((await call('PUT', '/_component_template/base', component)).body).toEqual(ACK);
    const template = {
      index_patterns: ['t-*'],
      composed_of: ['base'],
      priority: 10,
      template: {
        settings: { refresh_interval: '7s' },
        mappings: { properties: { a: { type: 'text' }, o: { properties: { y: { type: 'long' } } } } },
      },
      _meta: { by: 'us' },
    };
    expect((await call('PUT', '/_index_template/t', template)).body).toEqual(ACK);
    await call('PUT', '/_index_template/wide', {
      index_patterns: 't*',
      template: { settings: { number_of_replicas: 1 } },
    });
    await call('PUT', '/_template/old', { index_patterns: ['*'], order: 1, settings: { number_of_replicas: 5 } });

    await call('PUT', '/t-1', { mappings: { properties: { a: { type: 'date' } } } });
    const made = (await call('GET', '/t-1')).body['t-1'];
    expect(made.settings.index).toMatchObject({ number_of_replicas: '0', refresh_interval: '7s' });
    expect(made.mappings.properties).toEqual({
      a: { type: 'date' },
      o: { properties: { x: { type: 'long' }, y: { type: 'long' } } },
    });
    expect(made.aliases).toEqual({ 'all-t-1': {} });
    expect((await call('PUT', '/t-2/_doc/1', { a: 'x' })).status).toBe(201);
    expect((await call('GET', '/t-2')).body['t-2'].mappings.properties.a).toEqual({ type: 'text' });
    await call('PUT', '/other');
    expect((await call('GET', '/other/_settings')).body.other.settings.index.number_of_replicas).toBe('5');

    const shown = (await call('GET', '/_index_template/t')).body.index_templates;
    expect(shown).toEqual([
      {
        name: 't',
        index_template: {
          index_patterns: ['t-*'],
          template: { ...template.template, settings: { index: { refresh_interval: '7s' } } },
          composed_of: ['base'],
          priority: 10,
          _meta: { by: 'us' },
        },
      },
    ]);
    expect((await call('GET', '/_component_template/b*')).body.component_templates[0]).toMatchObject({
      name: 'base',
      component_template: { version: 3, template: { settings: { index: { number_of_replicas: '0' } } } },
    });
    expect((await call('GET', '/_template/old')).body.old).toMatchObject({ order: 1, index_patterns: ['*'] });
    const simulated = (await call('POST', '/_index_template/_simulate_index/t-9')).body;
    expect(simulated.template.settings.index).toMatchObject({ number_of_replicas: '0', refresh_interval: '7s' });
    expect(simulated.overlapping.map(({ name }: { name: string }) => name)).toEqual(['old', 'wide']);
    expect((await call('DELETE', '/_component_template/base')).body.error.reason).toContain('still in use');
    const broken = { template: { mappings: { properties: { o: { type: 'keyword' } } } } };
    expect((await call('PUT', '/_component_template/base', broken)).body).toEqual(ACK);
    for (const path of ['/_index_template/t', '/_index_template/wide', '/_component_template/base', '/_template/old']) {
      expect((await call('DELETE', path)).body, path).toEqual(ACK);
      expect((await call('HEAD', path)).status, path).toBe(404);
      expect((await call('DELETE', path)).status, path).toBe(404);
    }
    await call('DELETE', '/t-1,t-2,other');
  });

  it('give pipelines to the first document', async () => {
    await call('PUT', '/_ingest/pipeline/mark', { processors: [{ set: { field: 'seen', value: true } }] });
    await call('PUT', '/_index_template/p', {
      index_patterns: ['p-*'],
      template: { settings: { default_pipeline: 'mark' } },
    });
    await call('PUT', '/p-1/_doc/1', { a: 1 });
    expect((await call('GET', '/p-1/_source/1')).body).toEqual({ a: 1, seen: true });
    await call('DELETE', '/p-1');
    await call('DELETE', '/_index_template/p');
  });

  it.each([
    ['PUT', '/_index_template/x', {}, 400, 'Required [index_patterns]'],
    ['PUT', '/_index_template/x', { index_patterns: [] }, 400, 'index patterns are missing'],
    ['PUT', '/_index_template/x', { index_patterns: 'a', nope: 1 }, 400, 'unknown field [nope]'],
    ['PUT', '/_index_template/x', { index_patterns: 'a', priority: -1 }, 400, 'priority must be >= 0'],
    ['PUT', '/_index_template/x', { index_patterns: 'a', data_stream: {} }, 400, '[data_stream]'],
    [
      'PUT',
      '/_index_template/x',
      { index_patterns: 'a', composed_of: ['no'] },
      400,
      'component templates [no] that do not',
    ],
    ['PUT', '/_index_template/X', { index_patterns: 'a' }, 400, 'name must be lower cased'],
    ['PUT', '/_index_template/x', { index_patterns: '_a' }, 400, "must not start with '_'"],
    ['PUT', '/_index_template/x', { index_patterns: 'a', template: { settings: { no: 1 } } }, 400, 'index.no'],
    ['PUT', '/_index_template/x', { index_patterns: 'a', template: { mappings: { no: 1 } } }, 400, '[no : 1]'],
    ['PUT', '/_component_template/x', {}, 400, 'Required [template]'],
    ['PUT', '/_component_template/x', { template: { nope: {} } }, 400, 'unknown field [nope]'],
    ['PUT', '/_template/x', {}, 400, 'index patterns are missing'],
    ['PUT', '/_template/x', { index_patterns: 'a', nope: 1 }, 400, 'unknown key [nope]'],
    ['GET', '/_index_template/x', undefined, 404, 'index template matching [x] not found'],
    ['GET', '/_component_template/x', undefined, 404, 'component template matching [x] not found'],
    ['POST', '/_index_template/_simulate/x', undefined, 400, 'unable to simulate template [x]'],
  ])('%s %s %j is refused', async (method, path, body, status, reason) => {
    const answer = await call(method, path, body);
    expect([answer.status, answer.body.error.reason]).toEqual([status, expect.stringContaining(reason)]);
  });

  it('of one priority may not both match a name', async () => {
    await call('PUT', '/_index_template/one', { index_patterns: ['q-*'] });
    const two = await call('PUT', '/_index_template/two', { index_patterns: ['*-z'] });
    expect(two.body.error.reason).toBe(
      'index template [two] has index patterns [*-z] matching patterns from existing templates [one] with patterns ' +
        '(one => [q-*]) that have the same priority [0], multiple index templates may not match during index creation, ' +
        'please use a different priority',
    );
    expect((await call('PUT', '/_index_template/one?create=true', { index_patterns: ['r'] })).status).toBe(400);
    expect((await call('PUT', '/_index_template/two', { index_patterns: ['*-z'], priority: 1 })).body).toEqual(ACK);
    await call('DELETE', '/_index_template/one,two');
  });
});

describe('a closed index', () => {
  it('takes nothing, is passed over by patterns, and opens as it was', async () => {
    await call('PUT', '/shut/_doc/1?refresh=true', { a: 1 });
    await call('PUT', '/shut2/_doc/1?refresh=true', { a: 1 });
    expect((await call('POST', '/shut/_close')).body).toEqual({
      acknowledged: true,
      shards_acknowledged: true,
      indices: { shut: { closed: true } },
    });
    const refused = await call('GET', '/shut/_search');
    expect([refused.status, refused.body.error.type, refused.body.error.reason]).toEqual([
      ...[400, 'index_closed_exception', 'closed'],
    ]);
    expect((await call('PUT', '/shut/_doc/2', { a: 1 })).body.error.type).toBe('index_closed_exception');
    expect((await call('GET', '/shut/_doc/1')).body.error.type).toBe('index_closed_exception');
    expect((await call('GET', '/shut*/_count')).body.count).toBe(1);
    expect((await call('GET', '/shut,shut2/_count?ignore_unavailable=true')).body.count).toBe(1);
    expect((await call('GET', '/shut*/_count?expand_wildcards=all')).body.error.type).toBe('index_closed_exception');
    expect((await call('GET', '/_cat/indices/shut?h=status,index')).text).toBe('close shut\n');
    expect((await call('GET', '/_resolve/index/shut*?expand_wildcards=all')).body.indices).toEqual([
      { name: 'shut', attributes: ['closed'] },
      { name: 'shut2', attributes: ['open'] },
    ]);
    await server.kill();
    server = await startServer({ data: server.data, args: ARGS });
    expect((await call('GET', '/shut/_search')).status).toBe(400);
    expect((await call('POST', '/shut/_open')).body).toEqual({ acknowledged: true, shards_acknowledged: true });
    expect((await call('GET', '/shut/_count')).body.count).toBe(1);
    expect((await call('POST', '/_all/_close')).body.error.reason).toContain('Wildcard expressions');
    await call('DELETE', '/shut,shut2');
  });
});

describe('blocks', () => {
  it.each([
    ['write', 'FORBIDDEN/8/index write (api)', 'PUT', '/held/_doc/1'],
    ['read_only', 'FORBIDDEN/5/index read-only (api)', 'PUT', '/held/_mapping'],
    ['metadata', 'FORBIDDEN/9/index metadata (api)', 'GET', '/held'],
    ['read', 'FORBIDDEN/7/index read (api)', 'GET', '/held/_search'],
  ])('%s keeps off what it names', async (block, words, method, path) => {
    await call('PUT', '/held');
    const blocked = await call('PUT', `/held/_block/${block}`);
    expect(blocked.body.indices).toEqual([{ name: 'held', blocked: true }]);
    const refused = await call(method, path, method === 'PUT' ? { properties: {} } : undefined);
    expect([refused.status, refused.body.error]).toMatchObject([
      403,
      { type: 'cluster_block_exception', reason: `index [held] blocked by: [${words}];` },
    ]);
    expect((await call('PUT', '/held/_settings', { [`index.blocks.${block}`]: false })).body).toEqual(ACK);
    expect((await call('DELETE', '/held')).status).toBe(200);
  });

  it('have names', async () => {
    await call('PUT', '/held');
    expect((await call('PUT', '/held/_block/nope')).body.error.reason).toBe('No block found with name nope');
    await call('DELETE', '/held');
  });
});

describe('a force merge', () => {
  it('leaves one segment and no deleted documents', async () => {
    for (const id of ['1', '2', '3', '1']) await call('PUT', `/merged/_doc/${id}?refresh=true`, { a: id });
    const shards = { _shards: { total: 1, successful: 1, failed: 0 } };
    expect((await call('POST', '/merged/_forcemerge?max_num_segments=1')).body).toEqual(shards);
    const columns = '/_cat/indices/merged?h=docs.count,docs.deleted,segments.count';
    expect((await call('GET', columns)).text).toBe('3 0 1\n');
    await call('DELETE', '/merged/_doc/1?refresh=true');
    expect((await call('POST', '/merged/_forcemerge?only_expunge_deletes=true')).body).toEqual(shards);
    expect((await call('GET', columns)).text).toBe('2 0 1\n');
    const both = await call('POST', '/merged/_forcemerge?only_expunge_deletes=true&max_num_segments=1');
    expect(both.body.error.reason).toContain('mutually exclusive');
    expect((await call('POST', '/merged/_forcemerge?max_num_segments=0')).status).toBe(400);
    await call('DELETE', '/merged');
  });

  it.each([{ type: 'flat' }, { type: 'int8_flat', confidence_interval: 0.9 }])(
    'builds the graph that the only segment lacks, after %j',
    async (flat) => {
      const properties = (index_options: object) => ({
        properties: { v: { type: 'dense_vector', dims: 3, similarity: 'l2_norm', index_options } },
      });
      await call('PUT', '/lone', { mappings: properties(flat) });
      const lines = Array.from({ length: 10_000 }, (_, n) => {
        const v = [n % 100, Math.floor(n / 100), n % 2 === 0 ? 1e4 : -1e4];
        return `{"index":{"_id":"${String(n)}"}}\n${JSON.stringify({ v })}\n`;
      });
      expect((await call('POST', '/lone/_bulk?refresh=true', lines.join(''))).body.errors).toBe(false);
      await call('POST', '/lone/_forcemerge?max_num_segments=1');
      const nearest = async (k: number) => {
        const knn = { field: 'v', query_vector: [41, 62, 1e4], k, num_candidates: 100 };
        const { body, text } = await call('POST', '/lone/_search', { knn, size: 10, profile: true, _source: false });
        const ids = body.hits.hits.map((hit: { _id: string }) => hit._id) as string[];
        return { ids, walks: text.includes('graph_walk') };
      };
      const segments = async () => (await call('GET', '/lone/_stats/segments')).body._all.primaries.segments.count;
      expect([(await nearest(10)).walks, await segments()]).toEqual([false, 1]);
      await call('PUT', '/lone/_mapping', properties({ type: 'hnsw' }));
      expect((await call('POST', '/lone/_forcemerge')).status).toBe(200);
      // Of a hundred candidates that are all hits, all are compared exactly.
      expect(await nearest(10)).toEqual({ ids: (await nearest(100)).ids, walks: true });
      await call('PUT', '/lone/_doc/one?refresh=true', { v: [1, 2, 3] });
      for (const asked of ['', '?max_num_segments=2']) await call('POST', `/lone/_forcemerge${asked}`);
      expect(await segments()).toBe(2);
      await call('DELETE', '/lone');
    },
  );
});

describe('what is known and not there', () => {
  it.each([['PUT', '/_data_stream/x', 'data streams']])('%s %s is refused by name', async (method, path, name) => {
    const answer = await call(method, path);
    expect([answer.status, answer.body.error.reason]).toEqual([400, expect.stringContaining(name)]);
  });

  it('are data streams', async () => {
    expect((await call('GET', '/_data_stream')).body).toEqual({ data_streams: [] });
    expect((await call('GET', '/_data_stream/*?expand_wildcards=all')).body).toEqual({ data_streams: [] });
    for (const pattern of ['*', 'a*,b*']) {
      expect((await call('DELETE', `/_data_stream/${pattern}?expand_wildcards=all`)).body).toEqual({
        acknowledged: true,
      });
    }
    expect((await call('DELETE', '/_data_stream/x')).status).toBe(404);
    const one = await call('GET', '/_data_stream/x?expand_wildcards=all');
    expect([one.status, one.body.error.reason]).toEqual([404, 'no such index [x]']);
  });
});

describe('a server', () => {
  it('keeps templates over a crash in the middle of changing them', async () => {
    const written = { last: -1, goesOn: true };
    const changes = (async () => {
      for (let n = 0; written.goesOn; n += 1) {
        const template = { index_patterns: ['k-*'], version: n, _meta: { n } };
        const answer = await call('PUT', '/_index_template/k', template).catch(() => undefined);
        if (answer?.status === 200) written.last = n;
      }
    })();
    while (written.last < 5) await new Promise((resolve) => setTimeout(resolve, 10));
    await server.kill();
    written.goesOn = false;
    await changes;
    server = await startServer({ data: server.data, args: ARGS });
    const { version, _meta } = (await call('GET', '/_index_template/k')).body.index_templates[0].index_template;
    expect(_meta.n).toBe(version);
    expect(version).toBeGreaterThanOrEqual(written.last);
    await call('DELETE', '/_index_template/k');
  });

  it('serves the other indices when one cannot be opened', async () => {
    await call('PUT', '/good/_doc/1?refresh=true', { a: 1 });
    await call('PUT', '/bad', { aliases: { worse: {} } });
    await call('PUT', '/unreadable');
    const uuid = async (name: string): Promise<string> =>
      (await call('GET', `/${name}/_settings`)).body[name].settings.index.uuid as string;
    const [bad, unreadable] = [await uuid('bad'), await uuid('unreadable')];
    await server.stop();
    const segments = join(server.data, 'indices', bad, 'segments-1');
    await writeFile(join(segments, 'meta.json'), 'no index');
    await appendFile(join(server.data, 'store', `index-${unreadable}.json`), 'x');
    server = await startServer({ data: server.data, args: ARGS });
    expect((await call('GET', '/good/_count')).body.count).toBe(1);
    for (const name of ['bad', 'worse', 'unreadable']) {
      const refused = await call('GET', `/${name}/_search`);
      expect([refused.status, refused.body.error.reason]).toEqual([503, expect.stringContaining('cannot be opened')]);
    }
    expect((await call('PUT', '/bad/_doc/1', {})).status).toBe(503);
    expect((await call('PUT', '/bad')).body.error.type).toBe('resource_already_exists_exception');
    expect((await call('GET', '/_cluster/health')).body).toMatchObject({ status: 'red', unassigned_primary_shards: 2 });
    expect((await call('GET', '/_cat/indices/bad?h=health,index')).text).toBe('red bad\n');
    // Nothing is left out silently, unless the caller says so.
    expect((await call('GET', '/_all/_count')).status).toBe(503);
    expect((await call('GET', '/_all/_count?ignore_unavailable=true')).body.count).toBe(1);
    expect(await readdir(segments)).toContain('meta.json');
    expect((await call('GET', '/_alias/worse')).body).toEqual({ bad: { aliases: { worse: {} } } });
    for (const name of ['bad', 'unreadable']) expect((await call('DELETE', `/${name}`)).body).toEqual(ACK);
    expect((await call('GET', '/_cluster/health')).body.status).not.toBe('red');
    await call('DELETE', '/good');
  });
});

describe('pipelines', () => {
  it('are deleted by name or pattern, and a name that is not there is a 404', async () => {
    for (const name of ['gone-1', 'gone-2']) {
      expect((await call('PUT', `/_ingest/pipeline/${name}`, { processors: [] })).body).toEqual(ACK);
    }
    expect((await call('DELETE', '/_ingest/pipeline/gone-1')).body).toEqual(ACK);
    const again = await call('DELETE', '/_ingest/pipeline/gone-1');
    expect([again.status, again.body.error.type, again.body.error.reason]).toEqual([
      404,
      'resource_not_found_exception',
      'pipeline [gone-1] is missing',
    ]);
    expect((await call('DELETE', '/_ingest/pipeline/gone-*')).body).toEqual(ACK);
    expect((await call('GET', '/_ingest/pipeline/gone-2')).status).toBe(404);
  });
});
