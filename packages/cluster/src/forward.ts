import type { EngineReply, EngineRequest, Operation } from '@sparrow-search/engine';

import { notOverCluster } from './errors.js';
import { checkForeign } from './foreign-indices.js';
import { parseAnswer } from './json.js';
import { type Names, encodeExpression } from './names.js';
import { replyOf } from './replies.js';
import type { Asked, Transport } from './transport.js';

/** How the indices of an operation are named. */
type Named =
  /** By an expression of names and patterns; none stands for all indices but Sparrow's own. */
  | 'expression'
  /** As `expression`; none is left to the cluster, whose answer is then about the whole. */
  | 'optional'
  /** By one name. */
  | 'single'
  /** Not at all. */
  | 'none';

interface Row {
  readonly method: Asked['method'];
  /** Segments with parameters in braces; one that is missing is left out. */
  readonly path: string;
  readonly named: Named;
}

/** Operations that the cluster carries out as they are: its interface is the same there. */
const ROWS: Partial<Record<Operation, Row>> = {
  ...rows('expression', {
    get_settings: 'GET /{index}/_settings/{name}',
    refresh: 'POST /{index}/_refresh',
    flush: 'POST /{index}/_flush',
    close_index: 'POST /{index}/_close',
    open_index: 'POST /{index}/_open',
    add_block: 'PUT /{index}/_block/{block}',
    remove_block: 'DELETE /{index}/_block/{block}',
    force_merge: 'POST /{index}/_forcemerge',
    clear_cache: 'POST /{index}/_cache/clear',
    exists_index: 'HEAD /{index}',
    delete_index: 'DELETE /{index}',
    get_alias: 'GET /{index}/_alias/{name}',
    index_stats: 'GET /{index}/_stats/{metric}',
    index_segments: 'GET /{index}/_segments',
    recovery: 'GET /{index}/_recovery',
    field_caps: 'POST /{index}/_field_caps',
    search_shards: 'POST /{index}/_search_shards',
    cat_indices: 'GET /_cat/indices/{index}',
    cat_count: 'GET /_cat/count/{index}',
    cat_shards: 'GET /_cat/shards/{index}',
    cat_segments: 'GET /_cat/segments/{index}',
    cat_recovery: 'GET /_cat/recovery/{index}',
    resolve_index: 'GET /_resolve/index/{index}',
    get_data_stream: 'GET /_data_stream/{index}',
    delete_data_stream: 'DELETE /_data_stream/{index}',
  }),
  ...rows('optional', { cluster_health: 'GET /_cluster/health/{index}', analyze: 'POST /{index}/_analyze' }),
  ...rows('single', {
    get_doc: 'GET /{index}/_doc/{id}',
    exists_doc: 'HEAD /{index}/_doc/{id}',
    get_source: 'GET /{index}/_source/{id}',
    term_vectors: 'POST /{index}/_termvectors/{id}',
    create_data_stream: 'PUT /_data_stream/{index}',
  }),
  ...rows('none', {
    cat_health: 'GET /_cat/health',
    cat_nodes: 'GET /_cat/nodes',
    cat_allocation: 'GET /_cat/allocation/{node_id}',
    cat_thread_pool: 'GET /_cat/thread_pool/{thread_pool_patterns}',
    cat_pending_tasks: 'GET /_cat/pending_tasks',
    cat_plugins: 'GET /_cat/plugins',
    cat_nodeattrs: 'GET /_cat/nodeattrs',
    cat_templates: 'GET /_cat/templates/{name}',
    get_cluster_settings: 'GET /_cluster/settings',
    put_cluster_settings: 'PUT /_cluster/settings',
    pending_tasks: 'GET /_cluster/pending_tasks',
    delete_index_template: 'DELETE /_index_template/{name}',
    delete_component_template: 'DELETE /_component_template/{name}',
  }),
};

/** Operations whose body is not the cluster's business. */
const WITHOUT_BODY: ReadonlySet<string> = new Set(['cat_nodes', 'cat_allocation', 'cat_thread_pool']);

/** Writes that can be sent a second time. */
const REPEATABLE: ReadonlySet<string> = new Set([
  'refresh',
  'flush',
  'field_caps',
  'search_shards',
  'analyze',
  'term_vectors',
]);

/** Whether an operation is passed on as it is. */
export function isForwarded(op: Operation): boolean {
  return ROWS[op] !== undefined;
}

/** Passes an operation on. */
export async function forward(
  { transport, names }: { readonly transport: Transport; readonly names: Names },
  request: EngineRequest,
  body: Uint8Array | undefined,
  signal: AbortSignal,
): Promise<EngineReply> {
  const row = ROWS[request.op];
  if (row === undefined) throw new Error(`${request.op} is not passed on`);
  if (request.rights !== undefined && request.op === 'field_caps' && (body?.length ?? 0) > 0) {
    throw notOverCluster('a body of _field_caps, for a key that may use some indices only,');
  }
  // A body of `_field_caps` holds a query, its `index_filter`, which may name other indices.
  if (request.op === 'field_caps') await checkForeign(names, request, body);
  const index = await target(names, row.named, request);
  if (index === null)
    return {
      status: 200,
      body: Buffer.from(request.op.startsWith('cat_') ? '' : JSON.stringify(NOTHING[request.op] ?? {})),
      text: request.op.startsWith('cat_'),
    };
  const path = pathOf(row.path, { ...request.path, index: index ?? '' });
  const answered = await transport.ask({
    method: row.method,
    path,
    query: request.query,
    body: WITHOUT_BODY.has(request.op) ? undefined : body,
    signal,
    repeatable: row.method === 'GET' || row.method === 'HEAD' || REPEATABLE.has(request.op),
  });
  const reply = replyOf(answered);
  if (request.op !== 'resolve_index' || request.rights === undefined || answered.status !== 200) return reply;
  return { ...reply, body: await withoutForeignAliases(names, request, parseAnswer(answered.body)) };
}

/** The answers of operations whose patterns stand for no index, if they are not an empty object. */
const NOTHING: Partial<Record<Operation, object>> = {
  resolve_index: { indices: [], aliases: [], data_streams: [] },
  get_data_stream: { data_streams: [] },
  delete_data_stream: { acknowledged: true },
};

/** Operations in whose path the indices, or data streams, have another name. */
const BY_NAME: ReadonlySet<Operation> = new Set<Operation>([
  ...(['resolve_index', 'get_data_stream', 'create_data_stream', 'delete_data_stream'] as const),
]);

/** What names stand for, without the aliases of an index that the caller may not use: their names may say whose they are. */
async function withoutForeignAliases(names: Names, request: EngineRequest, found: unknown): Promise<Buffer> {
  const { indices = [], ...rest } = found as { readonly indices?: readonly { readonly aliases?: readonly string[] }[] };
  const shown = await Promise.all(
    indices.map(async ({ aliases, ...index }) => {
      const usable = aliases === undefined ? [] : await names.usable(request, aliases);
      return usable.length === 0 ? index : { ...index, aliases: usable };
    }),
  );
  return Buffer.from(JSON.stringify({ indices: shown, ...rest }));
}

/** What stands for the indices in the path; null when a restricted key's patterns stand for nothing. */
async function target(names: Names, named: Named, request: EngineRequest): Promise<string | null | undefined> {
  const given = request.path[BY_NAME.has(request.op) ? 'name' : 'index'];
  if (named === 'none' || (named === 'optional' && given === undefined)) return undefined;
  if (named === 'single') {
    await names.check(request, given === undefined ? [] : [given]);
    return given;
  }
  return (await names.expression(request, given)) ?? null;
}

/** A path with its parameters filled in. */
export function pathOf(pattern: string, parameters: Readonly<Record<string, string>>): string {
  return pattern
    .split('/')
    .flatMap((segment) => {
      if (!segment.startsWith('{')) return [segment];
      const value = parameters[segment.slice(1, -1)] ?? '';
      if (value === '') return [];
      return [segment === '{id}' ? encodeURIComponent(value) : encodeExpression(value)];
    })
    .join('/');
}

function rows(named: Named, table: Partial<Record<Operation, string>>): Partial<Record<Operation, Row>> {
  return Object.fromEntries(
    Object.entries(table).map(([op, route]) => {
      const [method = 'GET', path = '/'] = route.split(' ');
      return [op, { method: method as Asked['method'], path, named }];
    }),
  );
}
