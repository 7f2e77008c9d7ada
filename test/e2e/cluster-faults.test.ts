// Faults of a cluster while a server is over it. What answers here is no cluster: only its faults are of interest.
import { afterEach, describe, expect, it } from 'vitest';

import { type Answering, type Fake, fakeNodes } from '../support/cluster/fake.js';
import { type RunningServer, startServer } from '../support/server.js';

const begun: { fakes: Fake[]; servers: RunningServer[] } = { fakes: [], servers: [] };

afterEach(async () => {
  await Promise.all(begun.servers.splice(0).map((server) => server.kill()));
  await Promise.all(begun.fakes.splice(0).map((fake) => fake.close()));
});

async function nodes(count: number, answering: Answering = () => undefined): Promise<Fake[]> {
  const fakes = await fakeNodes(count, answering);
  begun.fakes.push(...fakes);
  return fakes;
}

async function node(answering?: Answering): Promise<Fake> {
  const [fake] = await nodes(1, answering);
  return fake as Fake;
}

async function over(cluster: string): Promise<RunningServer> {
  const server = await startServer({ args: ['--deploy-at-start', 'false', '--cluster', cluster] });
  begun.servers.push(server);
  return server;
}

const SEARCH = { query: { match_all: {} } };
const hits = (index: string) => ({ hits: { hits: [{ _index: index, _id: '1', _score: 1 }] } });
const error = (type: string, reason: string, status: number) => ({ status, body: { error: { type, reason }, status } });

describe('over a cluster with a fault', () => {
  it('another node is asked when one is gone, and a write that one may have done is not sent again', async () => {
    const fakes = await nodes(2);
    const server = await over(fakes.map(({ url }) => url).join(','));
    const [gone, left] = fakes as [Fake, Fake];
    await gone.close();
    for (let attempt = 0; attempt < 6; attempt += 1) {
      expect((await server.request('POST', '/a/_search', SEARCH)).status).toBe(200);
      expect((await server.request('PUT', `/a/_doc/${attempt}`, {})).status).toBe(200);
    }
    expect(left.asked.filter(({ path }) => path === '/a/_search')).toHaveLength(6);
    await left.close();
    const refused = await server.request('POST', '/a/_search', SEARCH);
    expect(refused.status).toBe(503);
    expect(refused.body.error.type).toBe('cluster_unreachable_exception');
    expect(refused.body.error.reason).toContain(left.url);
  });

  it('a write whose connection ends without an answer is sent once and refused, a search is asked again elsewhere', async () => {
    const drops: Answering = ({ path }) =>
      /_update|_search$/.test(path) && !path.startsWith('/.') ? 'drop' : undefined;
    const [first, second] = (await nodes(2, drops)) as [Fake, Fake];
    const server = await over(`${first.url},${second.url}`);
    const answer = await server.request('POST', '/a/_update/1', { doc: {} });
    expect(answer.status).toBe(503);
    const count = (path: string) => [...first.asked, ...second.asked].filter((it) => it.path === path).length;
    expect(count('/a/_update/1')).toBe(1);
    expect((await server.request('POST', '/a/_search', SEARCH)).status).toBe(503);
    expect(count('/a/_search')).toBe(2);
  });

  it('HTML in place of an answer is no answer, and is said', async () => {
    const html = { type: 'text/html', body: '<h1>502</h1>' };
    const fake = await node(({ path }) => (path === '/a/_search' ? html : undefined));
    const server = await over(fake.url);
    const answer = await server.request('POST', '/a/_search', SEARCH);
    expect(answer.status).toBe(503);
    expect(answer.body.error.reason).toContain('it answered with [text/html] and not with JSON');
    expect(answer.text).not.toContain('<h1>');
  });

  it('an answer that is cut off, or has another form, is the cluster’s fault, and acknowledges nothing', async () => {
    const torn = { body: '{"hits":{"total"' };
    const fake = await node(({ path }) => {
      if (path === '/a/_bulk')
        return { body: { took: 1, errors: false, items: [{ index: { _id: '1', status: 201 } }] } };
      if (path === '/a/_msearch') return { body: { responses: [{ hits: { hits: [] } }] } };
      if (path === '/d/_search_shards') return { body: { acknowledged: true } };
      if (path === '/b/_msearch') return { body: { responses: [{}, {}] } };
      return /_msearch$|_count$|_search_shards$|_mapping$/.test(path) && !path.startsWith('/.') ? torn : undefined;
    });
    const server = await over(fake.url);
    const ask = async (method: string, path: string, body?: unknown) => {
      const answer = await server.request(method, path, body);
      expect([path, answer.status, answer.body.error?.type]).toEqual([path, 502, 'cluster_answer_exception']);
    };
    const list = { standard: { query: { match_all: {} } } };
    const fused = { retriever: { rrf: { retrievers: [list] } } };
    for (const index of ['a', 'b', 'c']) await ask('POST', `/${index}/_search`, fused);
    await ask('PUT', '/c/_mapping', { properties: {} });
    // One of two writes goes through a pipeline, so that the answer is put together here.
    await server.request('PUT', '/_ingest/pipeline/p', { processors: [{ set: { field: 'a', value: 1 } }] });
    const lines = ['{"index":{"_id":"1","pipeline":"p"}}', '{}', '{"index":{"_id":"2"}}', '{}'];
    await ask('POST', '/a/_bulk', `${lines.join('\n')}\n`);
    for (const index of ['c', 'd'])
      await ask('POST', '/_reindex', { source: { index }, dest: { index: 'e', pipeline: 'p' } });
  });

  it('a refusal of Sparrow’s own credentials is told apart from one of the caller, and from a block', async () => {
    const fake = await node(({ path }) => {
      if (path === '/secret/_search') return error('security_exception', 'no permissions for [search]', 403);
      if (path === '/blocked/_search') return error('cluster_block_exception', 'index [blocked] blocked by: [x]', 403);
      return path === '/open/_search' ? { body: hits('open') } : undefined;
    });
    const server = await over(fake.url);
    const refused = await server.request('POST', '/secret/_search', SEARCH);
    expect(refused.status).toBe(502);
    expect(refused.body.error).toMatchObject({
      type: 'cluster_access_exception',
      caused_by: { type: 'security_exception', reason: 'no permissions for [search]' },
    });
    expect((await server.request('POST', '/blocked/_search', SEARCH)).body).toMatchObject({
      status: 403,
      error: { type: 'cluster_block_exception' },
    });
    const { encoded } = (
      await server.request('POST', '/_security/api_key', {
        name: 'k',
        role_descriptors: { r: { indices: [{ names: ['open'], privileges: ['read'] }] } },
      })
    ).body;
    const own = await server.request('POST', '/other/_search', SEARCH, { apiKey: encoded });
    expect(own.body).toMatchObject({ status: 403, error: { type: 'security_exception' } });
    expect((await server.request('POST', '/open/_search', SEARCH, { apiKey: encoded })).status).toBe(200);
  });

  it('a hidden index that was left half-made is completed; one that cannot be is said, and tried again', async () => {
    let refusals = 2;
    const fake = await node(({ method, path }) => {
      if (method !== 'PUT' || !path.startsWith('/.sparrow-tasks')) return undefined;
      if (path === '/.sparrow-tasks') return error('resource_already_exists_exception', 'it is there', 400);
      refusals -= 1;
      if (refusals < 0) return undefined;
      return error('illegal_argument_exception', 'mapper [lease_until] cannot be changed from type [text]', 400);
    });
    const server = await over(fake.url);
    const completed = fake.asked.filter(({ path }) => path === '/.sparrow-tasks/_mapping');
    expect(completed).toHaveLength(3);
    expect(JSON.parse(completed[0]?.body ?? '{}').properties.lease_until).toEqual({ type: 'long' });
    expect(server.output()).toContain('mapper [lease_until] cannot be changed from type [text]');
  });

  it('a hidden index whose shard is not there yet is waited for, and does not end the start', async () => {
    let missing = 2;
    const fake = await node(({ method, path }) => {
      if (method !== 'GET' || !path.startsWith('/.sparrow-state/_doc/') || missing === 0) return undefined;
      missing -= 1;
      return error('no_shard_available_action_exception', 'No shard available for [get]', 503);
    });
    const server = await over(fake.url);
    expect(missing).toBe(0);
    expect(server.output().split('the cluster cannot be used yet')).toHaveLength(3);
    expect(server.output()).toContain("of Sparrow's index [.sparrow-state] cannot be read or written");
    expect((await server.request('POST', '/a/_search', SEARCH)).status).toBe(200);
  });

  it('what another version keeps in the hidden index is refused by its number', async () => {
    const kept = { found: true, _seq_no: 3, _primary_term: 1, _source: { text: '{"format":9,"pipelines":{}}' } };
    const fake = await node(({ method, path }) =>
      method === 'GET' && path === '/.sparrow-state/_doc/pipelines' ? { body: kept } : undefined,
    );
    const server = await over(fake.url);
    const answer = await server.request('PUT', '/a/_doc/1?pipeline=p', {});
    expect(answer.status).toBe(503);
    expect(answer.body.error).toMatchObject({ type: 'cluster_state_exception' });
    expect(answer.body.error.reason).toContain('format version 9');
  });

  it('an answer that is too long is refused by its length, or where it becomes too long, and the next one is read', async () => {
    const fake = await node(({ path }) => {
      if (path === '/said/_search') return { body: '{', length: 300 * 1024 * 1024 };
      if (path === '/unsaid/_search' || path === '/unsaid/_update/1') return { body: ' '.repeat(1 << 20), times: 300 };
      return undefined;
    });
    const server = await over(fake.url);
    for (const [path, body] of [
      ['/said/_search', SEARCH],
      ['/unsaid/_search', SEARCH],
      ['/unsaid/_update/1', { doc: {} }],
    ] as const) {
      const { status, body: answer } = await server.request('POST', path, body);
      expect([path, status, answer.error.type]).toEqual([path, 502, 'cluster_answer_exception']);
      expect(answer.error.reason).toContain('answered with more than [268435456] bytes');
      expect(answer.error.reason.includes('it may have carried out the request')).toBe(path.includes('_update'));
      // It is not asked again.
      expect(fake.asked.filter((it) => it.path === path)).toHaveLength(1);
    }
    expect((await server.request('POST', '/a/_search', SEARCH)).status).toBe(200);
  });

  it('a bulk of too many actions, or with an action that is too long, is refused and never sent', async () => {
    const fake = await node();
    const server = await over(fake.url);
    const send = (text: string) => server.request('POST', '/a/_bulk', text);
    const many = await send('{"delete":{"_id":"1"}}\n'.repeat(250_001));
    expect([many.status, many.body.error]).toMatchObject([
      413,
      {
        type: 'content_too_long_exception',
        reason: 'a bulk request over a cluster may have at most [250000] actions: send it in parts',
      },
    ]);
    const long = await send(`{"index":{${'"_id":"1",'.repeat(10_000)}"_id":"1"}}\n{}\n`);
    expect([long.status, long.body.error]).toMatchObject([
      400,
      { reason: 'Malformed action/metadata line [1], it is longer than [65536] characters' },
    ]);
    expect((await send('\n'.repeat(1_000_000))).status).toBe(400);
    expect(fake.asked.filter(({ path }) => path === '/a/_bulk')).toEqual([]);
  });

  it('a name or a value that no address can be made of is refused, and no node is given up for it', async () => {
    const fake = await node();
    const server = await over(fake.url);
    const half = '\\ud800';
    const bulk = (action: string) => `{"index":{"_id":"1",${action}}}\n{}\n`;
    for (const [method, path, body] of [
      ['POST', '/_msearch', `{"index":"a${half}"}\n{}\n`],
      ['POST', '/_msearch', `{"index":"a","routing":"${half}"}\n{}\n`],
      ['POST', '/_bulk', bulk(`"_index":"a${half}"`)],
      ['POST', '/_reindex', `{"source":{"index":"${half}"},"dest":{"index":"b","pipeline":"p"}}`],
    ] as const) {
      const answer = await server.request(method, path, body);
      expect([path, body, answer.status], answer.text).toEqual([path, body, 400]);
      expect(answer.text).toContain('surrogate without the other one');
    }
    expect((await server.request('POST', '/a/_search', SEARCH)).status).toBe(200);
  });

  it('a request that is too long for the cluster is refused by name, whatever has made it longer', async () => {
    const fake = await node(({ path }) => (/\/(?:_doc\/1|_bulk)$/.test(path) ? { status: 413, body: '' } : undefined));
    const server = await over(fake.url);
    const refused = { status: 413, error: { type: 'content_too_long_exception' } };
    expect((await server.request('PUT', '/a/_doc/1', { text: 'long' })).body).toMatchObject(refused);
    const answer = await server.request('POST', '/a/_bulk', '{"index":{"_id":"1"}}\n{}\n');
    expect(answer.body).toMatchObject(refused);
    expect(answer.body.error.reason).toContain('with its vectors and passages');
  });

  it('a full queue is passed on as it is for a direct write', async () => {
    const fake = await node(({ path }) =>
      path === '/a/_bulk' ? error('rejected_execution_exception', 'the queue is full', 429) : undefined,
    );
    const server = await over(fake.url);
    const answer = await server.request('POST', '/a/_bulk', '{"index":{"_id":"1"}}\n{}\n');
    expect(answer.body).toMatchObject({ status: 429, error: { type: 'rejected_execution_exception' } });
    expect(fake.asked.filter(({ path }) => path === '/a/_bulk')).toHaveLength(1);
  });
});
