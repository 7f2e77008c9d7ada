/** What lets a key look at repositories and snapshots. */
const SNAPSHOT_READERS = ['monitor_snapshot', 'create_snapshot', 'manage', 'all'] as const;

/**
 * Every action a request can be authorised for, and the privileges that name it directly, narrowest first. A broader
 * privilege also grants what the privileges it implies grant (`IMPLIED`). The order is the order of the 403 sentence.
 */
export const ACTIONS = {
  'cluster:monitor/main': { scope: 'cluster', privileges: ['monitor', 'manage', 'all'] },
  'cluster:monitor/health': { scope: 'cluster', privileges: ['monitor', 'manage', 'all'] },
  'cluster:monitor/nodes/stats': { scope: 'cluster', privileges: ['monitor', 'manage', 'all'] },
  'cluster:monitor/nodes/info': { scope: 'cluster', privileges: ['monitor', 'manage', 'all'] },
  'cluster:monitor/nodes/hot_threads': { scope: 'cluster', privileges: ['monitor', 'manage', 'all'] },
  'cluster:monitor/state': { scope: 'cluster', privileges: ['monitor', 'manage', 'all'] },
  'cluster:monitor/stats': { scope: 'cluster', privileges: ['monitor', 'manage', 'all'] },
  'cluster:monitor/settings': { scope: 'cluster', privileges: ['monitor', 'manage', 'all'] },
  'cluster:monitor/task': { scope: 'cluster', privileges: ['monitor', 'manage', 'all'] },
  'cluster:monitor/health_api': { scope: 'cluster', privileges: ['monitor', 'manage', 'all'] },
  'cluster:monitor/xpack/info': { scope: 'cluster', privileges: ['monitor', 'manage', 'all'] },
  'cluster:monitor/xpack/license/get': { scope: 'cluster', privileges: ['monitor', 'manage', 'all'] },
  'cluster:monitor/remote/info': { scope: 'cluster', privileges: ['monitor', 'manage', 'all'] },
  'cluster:admin/settings/update': { scope: 'cluster', privileges: ['manage', 'all'] },
  'cluster:monitor/task/get': { scope: 'cluster', privileges: ['monitor', 'manage', 'all'] },
  'cluster:monitor/tasks/lists': { scope: 'cluster', privileges: ['monitor', 'manage', 'all'] },
  'cluster:admin/tasks/cancel': { scope: 'cluster', privileges: ['manage', 'all'] },
  'cluster:admin/reindex/rethrottle': { scope: 'cluster', privileges: ['manage', 'all'] },
  'cluster:admin/ingest/pipeline/put': {
    scope: 'cluster',
    privileges: ['manage_ingest_pipelines', 'manage_pipeline', 'manage', 'all'],
  },
  'cluster:admin/ingest/pipeline/get': {
    scope: 'cluster',
    privileges: ['read_pipeline', 'manage_ingest_pipelines', 'manage_pipeline', 'manage', 'all'],
  },
  'cluster:admin/ingest/pipeline/delete': {
    scope: 'cluster',
    privileges: ['manage_ingest_pipelines', 'manage_pipeline', 'manage', 'all'],
  },
  'cluster:admin/ingest/pipeline/simulate': {
    scope: 'cluster',
    privileges: ['read_pipeline', 'manage_ingest_pipelines', 'manage_pipeline', 'manage', 'all'],
  },
  'cluster:monitor/xpack/ml/info/get': {
    scope: 'cluster',
    privileges: ['monitor_ml', 'manage_ml', 'monitor', 'manage', 'all'],
  },
  'cluster:monitor/xpack/ml/inference/get': {
    scope: 'cluster',
    privileges: ['monitor_ml', 'manage_ml', 'monitor', 'manage', 'all'],
  },
  'cluster:monitor/xpack/ml/inference/stats/get': {
    scope: 'cluster',
    privileges: ['monitor_ml', 'manage_ml', 'monitor', 'manage', 'all'],
  },
  'cluster:monitor/xpack/ml/inference/infer': {
    scope: 'cluster',
    privileges: ['monitor_ml', 'manage_ml', 'monitor', 'manage', 'all'],
  },
  'cluster:admin/xpack/ml/trained_models/deployment/start': {
    scope: 'cluster',
    privileges: ['manage_ml', 'manage', 'all'],
  },
  'cluster:admin/xpack/ml/trained_models/deployment/stop': {
    scope: 'cluster',
    privileges: ['manage_ml', 'manage', 'all'],
  },
  'cluster:admin/xpack/ml/trained_models/deployment/update': {
    scope: 'cluster',
    privileges: ['manage_ml', 'manage', 'all'],
  },
  'cluster:admin/xpack/ml/inference/put': {
    scope: 'cluster',
    privileges: ['manage_ml', 'manage', 'all'],
  },
  'cluster:admin/xpack/ml/inference/delete': {
    scope: 'cluster',
    privileges: ['manage_ml', 'manage', 'all'],
  },
  'cluster:admin/xpack/ml/trained_models/part/put': {
    scope: 'cluster',
    privileges: ['manage_ml', 'manage', 'all'],
  },
  'cluster:admin/xpack/ml/trained_models/vocabulary/put': {
    scope: 'cluster',
    privileges: ['manage_ml', 'manage', 'all'],
  },
  'cluster:admin/xpack/ml/inference/model_aliases/put': {
    scope: 'cluster',
    privileges: ['manage_ml', 'manage', 'all'],
  },
  'cluster:admin/xpack/ml/inference/model_aliases/delete': {
    scope: 'cluster',
    privileges: ['manage_ml', 'manage', 'all'],
  },
  'cluster:admin/xpack/inference/put': { scope: 'cluster', privileges: ['manage_inference', 'manage', 'all'] },
  'cluster:admin/xpack/inference/update': { scope: 'cluster', privileges: ['manage_inference', 'manage', 'all'] },
  'cluster:admin/xpack/inference/delete': { scope: 'cluster', privileges: ['manage_inference', 'manage', 'all'] },
  'cluster:monitor/xpack/inference/get': {
    scope: 'cluster',
    privileges: ['monitor_inference', 'manage_inference', 'monitor', 'manage', 'all'],
  },
  'cluster:monitor/xpack/inference/post': {
    scope: 'cluster',
    privileges: ['monitor_inference', 'manage_inference', 'monitor', 'manage', 'all'],
  },
  'indices:admin/index_template/put': { scope: 'cluster', privileges: ['manage_index_templates', 'manage', 'all'] },
  'indices:admin/index_template/get': { scope: 'cluster', privileges: ['manage_index_templates', 'manage', 'all'] },
  'indices:admin/index_template/delete': { scope: 'cluster', privileges: ['manage_index_templates', 'manage', 'all'] },
  'indices:admin/index_template/simulate_index': {
    scope: 'cluster',
    privileges: ['manage_index_templates', 'manage', 'all'],
  },
  'cluster:admin/component_template/put': { scope: 'cluster', privileges: ['manage_index_templates', 'manage', 'all'] },
  'cluster:admin/component_template/get': { scope: 'cluster', privileges: ['manage_index_templates', 'manage', 'all'] },
  'cluster:admin/component_template/delete': {
    scope: 'cluster',
    privileges: ['manage_index_templates', 'manage', 'all'],
  },
  'indices:admin/template/put': { scope: 'cluster', privileges: ['manage_index_templates', 'manage', 'all'] },
  'indices:admin/template/get': { scope: 'cluster', privileges: ['manage_index_templates', 'manage', 'all'] },
  'indices:admin/template/delete': { scope: 'cluster', privileges: ['manage_index_templates', 'manage', 'all'] },
  'cluster:admin/repository/get': { scope: 'cluster', privileges: SNAPSHOT_READERS },
  'cluster:admin/repository/put': { scope: 'cluster', privileges: ['manage', 'all'] },
  'cluster:admin/repository/delete': { scope: 'cluster', privileges: ['manage', 'all'] },
  'cluster:admin/repository/verify': { scope: 'cluster', privileges: ['manage', 'all'] },
  'cluster:admin/repository/_cleanup': { scope: 'cluster', privileges: ['manage', 'all'] },
  'cluster:admin/snapshot/get': { scope: 'cluster', privileges: SNAPSHOT_READERS },
  'cluster:admin/snapshot/status': { scope: 'cluster', privileges: SNAPSHOT_READERS },
  'cluster:admin/snapshot/create': { scope: 'cluster', privileges: ['create_snapshot', 'manage', 'all'] },
  'cluster:admin/snapshot/clone': { scope: 'cluster', privileges: ['manage', 'all'] },
  'cluster:admin/snapshot/delete': { scope: 'cluster', privileges: ['manage', 'all'] },
  'cluster:admin/snapshot/restore': { scope: 'cluster', privileges: ['manage', 'all'] },
  'cluster:admin/xpack/upgrade': { scope: 'cluster', privileges: ['manage', 'all'] },
  'cluster:monitor/xpack/upgrade/info': { scope: 'cluster', privileges: ['monitor', 'manage', 'all'] },
  'cluster:admin/xpack/security/api_key/create': {
    scope: 'cluster',
    privileges: ['manage_own_api_key', 'manage_api_key', 'manage_security', 'all'],
  },
  'cluster:admin/xpack/security/api_key/get': {
    scope: 'cluster',
    privileges: ['manage_own_api_key', 'manage_api_key', 'read_security', 'manage_security', 'all'],
  },
  'cluster:admin/xpack/security/api_key/invalidate': {
    scope: 'cluster',
    privileges: ['manage_own_api_key', 'manage_api_key', 'manage_security', 'all'],
  },
  'cluster:admin/xpack/security/api_key/query': {
    scope: 'cluster',
    privileges: ['manage_own_api_key', 'manage_api_key', 'read_security', 'manage_security', 'all'],
  },
  'cluster:admin/xpack/security/api_key/update': {
    scope: 'cluster',
    privileges: ['manage_own_api_key', 'manage_api_key', 'manage_security', 'all'],
  },
  'cluster:admin/xpack/security/api_key/bulk_update': {
    scope: 'cluster',
    privileges: ['manage_own_api_key', 'manage_api_key', 'manage_security', 'all'],
  },

  'indices:admin/create': { scope: 'index', privileges: ['create_index', 'manage', 'all'] },
  /** Making an index by writing to its name. */
  'indices:admin/auto_create': { scope: 'index', privileges: ['auto_configure', 'create_index', 'manage', 'all'] },
  'indices:admin/get': { scope: 'index', privileges: ['view_index_metadata', 'manage', 'all'] },
  'indices:admin/delete': { scope: 'index', privileges: ['delete_index', 'manage', 'all'] },
  'indices:admin/mappings/get': { scope: 'index', privileges: ['view_index_metadata', 'manage', 'all'] },
  'indices:admin/mapping/put': { scope: 'index', privileges: ['manage', 'all'] },
  'indices:monitor/settings/get': {
    scope: 'index',
    privileges: ['monitor', 'view_index_metadata', 'manage', 'all'],
  },
  'indices:admin/settings/update': { scope: 'index', privileges: ['manage', 'all'] },
  'indices:admin/analyze': { scope: 'index', privileges: ['manage', 'all'] },
  'indices:admin/aliases': { scope: 'index', privileges: ['manage', 'all'] },
  'indices:admin/aliases/get': { scope: 'index', privileges: ['view_index_metadata', 'manage', 'all'] },
  'indices:admin/close': { scope: 'index', privileges: ['manage', 'all'] },
  'indices:admin/open': { scope: 'index', privileges: ['manage', 'all'] },
  'indices:admin/block/add': { scope: 'index', privileges: ['manage', 'all'] },
  'indices:admin/block/remove': { scope: 'index', privileges: ['manage', 'all'] },
  'indices:admin/forcemerge': { scope: 'index', privileges: ['maintenance', 'manage', 'all'] },
  'indices:admin/cache/clear': { scope: 'index', privileges: ['maintenance', 'manage', 'all'] },
  'indices:admin/resolve/index': { scope: 'index', privileges: ['view_index_metadata', 'manage', 'read', 'all'] },
  'indices:admin/data_stream/get': { scope: 'index', privileges: ['view_index_metadata', 'manage', 'all'] },
  'indices:admin/data_stream/create': { scope: 'index', privileges: ['create_index', 'manage', 'all'] },
  'indices:admin/data_stream/delete': { scope: 'index', privileges: ['delete_index', 'manage', 'all'] },
  'indices:admin/rollover': { scope: 'index', privileges: ['manage', 'all'] },
  'indices:admin/resize': { scope: 'index', privileges: ['manage', 'all'] },
  /** Changing the model of a field, and each step of that. */
  'indices:admin/ext/model/change': { scope: 'index', privileges: ['manage', 'all'] },
  'indices:admin/ext/model/get': { scope: 'index', privileges: ['view_index_metadata', 'manage', 'all'] },
  'indices:admin/refresh': { scope: 'index', privileges: ['maintenance', 'manage', 'all'] },
  'indices:admin/flush': { scope: 'index', privileges: ['maintenance', 'manage', 'all'] },
  'indices:monitor/segments': { scope: 'index', privileges: ['monitor', 'manage', 'all'] },
  'indices:monitor/recovery': { scope: 'index', privileges: ['monitor', 'manage', 'all'] },
  'indices:monitor/stats': { scope: 'index', privileges: ['monitor', 'manage', 'all'] },
  'indices:data/read/search': { scope: 'index', privileges: ['read', 'all'] },
  'indices:data/read/explain': { scope: 'index', privileges: ['read', 'all'] },
  'indices:data/read/msearch': { scope: 'index', privileges: ['read', 'all'] },
  'indices:data/read/rank_eval': { scope: 'index', privileges: ['read', 'all'] },
  'indices:data/read/scroll': { scope: 'index', privileges: ['read', 'all'] },
  'indices:data/read/scroll/clear': { scope: 'index', privileges: ['read', 'all'] },
  'indices:data/read/open_point_in_time': { scope: 'index', privileges: ['read', 'all'] },
  'indices:data/read/close_point_in_time': { scope: 'index', privileges: ['read', 'all'] },
  'indices:data/read/field_caps': { scope: 'index', privileges: ['read', 'view_index_metadata', 'manage', 'all'] },
  'indices:data/read/xpack/termsenum/list': { scope: 'index', privileges: ['read', 'all'] },
  'indices:data/read/tv': { scope: 'index', privileges: ['read', 'all'] },
  'indices:data/read/mtv': { scope: 'index', privileges: ['read', 'all'] },
  'indices:admin/validate/query': { scope: 'index', privileges: ['view_index_metadata', 'manage', 'all'] },
  'indices:admin/shards/search_shards': { scope: 'index', privileges: ['view_index_metadata', 'manage', 'all'] },
  'indices:admin/mappings/fields/get': { scope: 'index', privileges: ['view_index_metadata', 'manage', 'all'] },
  'indices:data/read/get': { scope: 'index', privileges: ['read', 'all'] },
  'indices:data/read/mget': { scope: 'index', privileges: ['read', 'all'] },
  /** Any write of a whole document; which one decides what of the next two is needed. */
  'indices:data/write/index': { scope: 'index', privileges: ['create_doc', 'create', 'index', 'write', 'all'] },
  /** Adding a document that is not there yet. */
  'indices:data/write/index:op_type/create': {
    scope: 'index',
    privileges: ['create_doc', 'create', 'index', 'write', 'all'],
  },
  /** Writing a document whether it is there or not. */
  'indices:data/write/index:op_type/index': { scope: 'index', privileges: ['create', 'index', 'write', 'all'] },
  'indices:data/write/update': { scope: 'index', privileges: ['index', 'write', 'all'] },
  'indices:data/write/delete': { scope: 'index', privileges: ['delete', 'write', 'all'] },
  'indices:data/write/bulk': {
    scope: 'index',
    privileges: ['create_doc', 'create', 'delete', 'index', 'write', 'all'],
  },
  'indices:data/write/reindex': { scope: 'index', privileges: ['index', 'write', 'all'] },
  'indices:data/write/update/byquery': { scope: 'index', privileges: ['index', 'write', 'all'] },
  'indices:data/write/delete/byquery': { scope: 'index', privileges: ['delete', 'write', 'all'] },
} as const satisfies Record<string, { scope: 'cluster' | 'index'; privileges: readonly string[] }>;

export type Action = keyof typeof ACTIONS;

/** The actions that the engine checks on names; it knows every one of them. */
export const INDEX_ACTIONS: readonly Action[] = (Object.keys(ACTIONS) as Action[]).filter(
  (action) => ACTIONS[action].scope === 'index',
);

/** Actions of requests whose bodies name indices: each name is then refused by itself. */
export const COMPOSITE: ReadonlySet<Action> = new Set<Action>([
  ...(['indices:data/write/bulk', 'indices:data/write/reindex', 'indices:data/read/mget'] as const),
  ...(['indices:data/read/mtv', 'indices:data/read/msearch', 'indices:data/read/scroll'] as const),
  ...(['indices:data/read/scroll/clear', 'indices:data/read/close_point_in_time'] as const),
]);

/** What a broader privilege brings along besides what names it directly. */
const IMPLIED: Readonly<Record<string, readonly string[]>> = {
  write: ['create_doc', 'create', 'index', 'delete'],
  index: ['create_doc', 'create'],
  create: ['create_doc'],
  manage_security: ['manage_api_key'],
};

/** All index privileges a role may name. */
export const INDEX_PRIVILEGES: ReadonlySet<string> = privilegesOf('index', ['none', 'maintenance']);

/** All cluster privileges a role may name. */
export const CLUSTER_PRIVILEGES: ReadonlySet<string> = privilegesOf('cluster', ['none']);

/** Whether a role holding `held` may carry out `action`. */
export function grants(held: readonly string[], action: Action): boolean {
  const wanted: readonly string[] = ACTIONS[action].privileges;
  return held.some(
    (privilege) => wanted.includes(privilege) || (IMPLIED[privilege] ?? []).some((implied) => wanted.includes(implied)),
  );
}

function privilegesOf(scope: 'cluster' | 'index', more: readonly string[]): ReadonlySet<string> {
  const named = Object.values(ACTIONS).filter((action) => action.scope === scope);
  return new Set([...more, ...named.flatMap((action): readonly string[] => action.privileges)]);
}
