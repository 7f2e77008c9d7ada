// Every operation of the route table with every kind of key, against a table of what Elasticsearch's privileges allow.
import { ENDPOINTS, type Endpoint } from '@sparrow-search/server';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { BODIES, operationOf } from '../support/examples.js';
import { type RunningServer, startServer } from '../support/server.js';

/** The kinds of keys: privileges on the indices `mine*`, or on the cluster. */
const KINDS: Readonly<Record<string, { readonly indices?: readonly string[]; readonly cluster?: readonly string[] }>> =
  {
    nothing: {},
    read: { indices: ['read'] },
    write: { indices: ['write'] },
    'read, write': { indices: ['read', 'write'] },
    create_doc: { indices: ['create_doc'] },
    manage: { indices: ['manage'] },
    monitor: { indices: ['monitor'] },
    view: { indices: ['view_index_metadata'] },
    maintenance: { indices: ['maintenance'] },
    'cluster monitor': { cluster: ['monitor'] },
    'cluster manage': { cluster: ['manage'] },
    'cluster security': { cluster: ['manage_security'] },
  };

const READ = ['read', 'read, write'];
const WRITE = ['write', 'read, write'];
const ADD = [...WRITE, 'create_doc'];
const BY_QUERY = ['read, write'];
const VIEW = ['view', 'manage'];
const MONITOR = ['monitor', 'manage'];
const MAINTAIN = ['maintenance', 'manage'];
const SEE_CLUSTER = ['cluster monitor', 'cluster manage'];
const MANAGE_CLUSTER = ['cluster manage'];
const SECURITY = ['cluster security'];

/** Which kinds may carry out an operation, on an index of theirs where it is one on indices. */
const ALLOWED: readonly (readonly [kinds: readonly string[], operations: string])[] = [
  [
    READ,
    'search count explain knn_search msearch rank_eval scroll clear_scroll open_point_in_time close_point_in_time cat_count',
  ],
  [READ, 'search_template msearch_template render_template'],
  [READ, 'async_search get_async_search async_search_status delete_async_search'],
  [READ, 'get_doc exists_doc get_source mget term_vectors multi_term_vectors terms_enum'],
  [ADD, 'index_doc create_doc bulk'],
  [WRITE, 'update_doc delete_doc'],
  [BY_QUERY, 'reindex update_by_query delete_by_query'],
  [VIEW, 'get_index exists_index get_mapping get_field_mapping get_alias cat_aliases get_data_stream'],
  [VIEW, 'validate_query search_shards get_field_models'],
  // Its example has an [index_filter], which is a search.
  [READ, 'field_caps'],
  [[...VIEW, ...READ], 'resolve_index'],
  [[...MONITOR, 'view'], 'get_settings'],
  [MONITOR, 'index_stats index_segments recovery cat_indices cat_shards cat_segments cat_recovery'],
  [MAINTAIN, 'refresh flush force_merge clear_cache'],
  [
    ['manage'],
    'create_index put_mapping put_settings analyze close_index open_index add_block remove_block create_data_stream delete_data_stream',
  ],
  [['manage'], 'change_model switch_model roll_back_model drop_model'],
  [['manage'], 'rollover clone_index shrink_index split_index update_aliases put_alias delete_alias delete_index'],
  [SEE_CLUSTER, 'info cat_help cat_health cat_master cat_nodes cat_allocation cat_tasks cat_thread_pool cat_fielddata'],
  [SEE_CLUSTER, 'cat_nodeattrs cat_pending_tasks cat_plugins cat_trained_models cluster_health cluster_state'],
  [SEE_CLUSTER, 'get_cluster_settings pending_tasks remote_info cluster_stats nodes_info nodes_stats hot_threads'],
  [
    SEE_CLUSTER,
    'get_task list_tasks ended_tasks get_reindex list_reindex ml_info get_trained_models trained_model_stats',
  ],
  [SEE_CLUSTER, 'infer_trained_model get_inference'],
  [SEE_CLUSTER, 'license xpack_info health_report list_none'],
  [SEE_CLUSTER, 'openai_embeddings openai_models openai_model cohere_rerank'],
  [SEE_CLUSTER, 'infer infer_stream embed_sparse upgrade_assistance metrics'],
  [
    MANAGE_CLUSTER,
    'put_cluster_settings cancel_tasks cancel_task cancel_reindex rethrottle upgrade_index get_repository get_snapshot',
  ],
  [
    MANAGE_CLUSTER,
    'put_repository delete_repository verify_repository cleanup_repository create_snapshot clone_snapshot',
  ],
  [MANAGE_CLUSTER, 'snapshot_status delete_snapshot restore_snapshot cat_repositories cat_snapshots cat_templates'],
  [MANAGE_CLUSTER, 'cat_component_templates put_index_template get_index_template delete_index_template'],
  [MANAGE_CLUSTER, 'simulate_index_template put_component_template get_component_template delete_component_template'],
  [MANAGE_CLUSTER, 'put_template get_template delete_template put_pipeline get_pipeline delete_pipeline'],
  [MANAGE_CLUSTER, 'simulate_pipeline put_trained_model delete_trained_model put_trained_model_definition_part'],
  [MANAGE_CLUSTER, 'put_trained_model_vocabulary put_trained_model_alias delete_trained_model_alias start_deployment'],
  [MANAGE_CLUSTER, 'stop_deployment update_deployment put_inference delete_inference update_inference'],
  [MANAGE_CLUSTER, 'put_script get_script delete_script script_contexts script_languages'],
  [SECURITY, 'create_api_key get_api_keys invalidate_api_keys query_api_keys update_api_key bulk_update_api_keys'],
  [Object.keys(KINDS), 'authenticate health live openapi console documentation search_documentation mcp'],
];

const EXPECTED = new Map(
  ALLOWED.flatMap(([kinds, operations]) => operations.split(' ').map((operation) => [operation, kinds] as const)),
);

/** Operations whose path has the name of an alias, an index or a data stream in `{name}`. */
const NAMED = new Set([
  'put_alias',
  'get_alias',
  'delete_alias',
  'cat_aliases',
  'resolve_index',
  'get_data_stream',
  'create_data_stream',
  'delete_data_stream',
]);

/** Whether a request writes a whole document under an id, which `create_doc` does not allow. */
function overwrites({ path }: Endpoint, operation: string): boolean {
  return operation === 'index_doc' && path.includes('{id}');
}

const OWN: Readonly<Record<string, string>> = { books: 'mine', copy: 'mine-copy', 'an-alias': 'mine-alias' };

/** A body that names only indices of the key, or only others. */
function bodyOf({ path }: Endpoint, operation: string, prefix: 'mine' | 'other'): Buffer | undefined {
  if (operation === 'put_alias') return Buffer.from(JSON.stringify({ index: prefix, alias: `${prefix}-alias` }));
  if (operation === 'term_vectors' && !path.includes('{id}')) return Buffer.from('{"doc":{"title":"one"}}');
  const body = BODIES[operation];
  if (body === undefined) return undefined;
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  const named = text.replaceAll(
    /"(books|copy|an-alias)"/g,
    (_, name: string) => `"${OWN[name]?.replace('mine', prefix) ?? ''}"`,
  );
  // Documents of a bulk are added, so that every key that may write at all may do it.
  return Buffer.from(operation === 'bulk' ? named.replace('"index":', '"create":') : named);
}

function pathOf({ path }: Endpoint, operation: string, prefix: 'mine' | 'other'): string {
  const names: Readonly<Record<string, string>> = {
    index: prefix,
    target: `${prefix}-target`,
    name: NAMED.has(operation) ? `${prefix}-alias` : 'thing',
    id: 'some',
    block: 'write',
    metric: '_all',
    node_id: '_local',
    task: 'nobody:1',
    part: '0',
    context: 'template',
  };
  const filled = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => names[name] ?? 'thing');
  return operation === 'open_point_in_time' ? `${filled}?keep_alive=1m` : filled;
}

let server: RunningServer;
const keys = new Map<string, string>();
const tried = { requests: 0, refused: 0, letThrough: 0, wronglyRefused: 0 };

beforeAll(async () => {
  server = await startServer({ args: ['--deploy-at-start', 'false'] });
  for (const [kind, { indices, cluster = [] }] of Object.entries(KINDS)) {
    const role = { cluster, indices: indices === undefined ? [] : [{ names: ['mine*'], privileges: indices }] };
    const body = { name: 'kind', role_descriptors: { role } };
    keys.set(kind, (await server.request('POST', '/_security/api_key', body)).body.encoded);
  }
});

afterAll(async () => {
  await server.stop();
  expect(tried.requests).toBeGreaterThan(ENDPOINTS.length * Object.keys(KINDS).length);
  expect(tried.refused).toBeGreaterThan(0);
  console.log(
    `privilege matrix: ${String(Object.keys(KINDS).length)} kinds of keys, ${String(ENDPOINTS.length)} routes: ` +
      `${String(tried.requests)} combinations tried, ${String(tried.refused)} refused, ${String(tried.letThrough)} let through ` +
      `that should not be, ${String(tried.wronglyRefused)} refused that should not be`,
  );
});

async function prepare(): Promise<void> {
  for (const index of ['mine', 'mine-copy', 'other', 'other-copy']) {
    await server.request('PUT', `/${index}`);
    await server.request('POST', `/${index}/_open`);
    await server.request('PUT', `/${index}/_settings`, { 'index.blocks.write': false });
  }
}

/** What remains of the others' indices must be what was there. */
async function others(): Promise<string> {
  const { text } = await server.request('GET', '/other*?flat_settings=true');
  return text + (await server.request('GET', '/_cat/indices/other*?h=index,status,docs.count')).text;
}

it('has an expectation for every operation', () => {
  const operations = new Set(ENDPOINTS.map(operationOf));
  expect([...EXPECTED.keys()].toSorted()).toEqual([...operations].toSorted());
});

describe.each(Object.keys(KINDS))('a key with %s', (kind) => {
  // What deletes comes last.
  const endpoints = ENDPOINTS.toSorted(
    (a, b) => Number(operationOf(a) === 'delete_index') - Number(operationOf(b) === 'delete_index'),
  );

  it('may do what it says and nothing else', { timeout: 120_000 }, async () => {
    await prepare();
    const before = await others();
    const apiKey = keys.get(kind) ?? '';
    const wrong: string[] = [];
    for (const endpoint of endpoints) {
      const operation = operationOf(endpoint);
      if (endpoint.action === 'public') continue;
      const kinds = EXPECTED.get(operation) ?? [];
      const allowed = kinds.includes(kind) && !(kind === 'create_doc' && overwrites(endpoint, operation));
      const ofIndices =
        endpoint.action?.startsWith('indices:') === true && !MANAGE_CLUSTER.every((one) => kinds.includes(one));
      const sends = (prefix: 'mine' | 'other'): Buffer | undefined =>
        endpoint.body && (ofIndices || operation === 'create_api_key')
          ? bodyOf(endpoint, operation, prefix)
          : undefined;
      const path = pathOf(endpoint, operation, 'mine');
      const own = await server.request(endpoint.method, path, sends('mine'), { apiKey });
      tried.requests += 1;
      tried.refused += Number(own.status === 403);
      if ((own.status === 403) === allowed || own.status === 401) {
        tried[allowed ? 'wronglyRefused' : 'letThrough'] += 1;
        wrong.push(`${endpoint.method} ${path}: ${String(own.status)} ${own.text.slice(0, 200)}`);
      }
      // Whatever the key may do, it is not allowed to on an index of others.
      if (!ofIndices || !/\{(index|name)\}/.test(endpoint.path) || endpoint.path.includes('_settings/{name}')) continue;
      // The body names a point in time that the key itself has opened, so the index in the path decides nothing.
      if (operation === 'close_point_in_time') continue;
      const foreign = pathOf(endpoint, operation, 'other');
      if (!foreign.includes('other')) continue;
      const other = await server.request(endpoint.method, foreign, sends('other'), { apiKey });
      tried.requests += 1;
      tried.refused += Number(other.status === 403);
      const items = ['bulk', 'mget', 'msearch', 'msearch_template', 'multi_term_vectors'].includes(operation);
      const refused =
        other.status === 403 || (items && other.status === 200 && other.text.includes('"security_exception"'));
      tried.letThrough += Number(!refused);
      if (!refused) wrong.push(`${endpoint.method} ${foreign}: ${String(other.status)} ${other.text.slice(0, 200)}`);
    }
    expect(wrong).toEqual([]);
    expect(await others()).toBe(before);
  });
});
