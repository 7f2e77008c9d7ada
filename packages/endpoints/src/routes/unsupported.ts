/**
 * Endpoints of Elasticsearch's public REST specification that this server does not have: what they are, the paths that they begin
 * with, and what does the same here. `test/api/unsupported.test.ts` holds the list against the paths of the official client.
 */
const ELSEWHERE: readonly (readonly [what: string, paths: readonly string[], instead?: string])[] = [
  ['ES|QL is', ['/_query'], 'use [_search]'],
  ['SQL is', ['/_sql'], 'use [_search]'],
  ['EQL is', ['/_eql', '/{index}/_eql'], 'use [_search]'],
  ['running a script by itself is', ['/_scripts/painless/_execute']],
  ['query rules are', ['/_query_rules'], 'use the query [pinned]'],
  ['search applications and analytics collections are', ['/_application'], 'use [_search]'],
  ['the graph of terms is', ['/{index}/_graph']],
  ['vector tiles are', ['/{index}/_mvt']],
  ['Fleet is', ['/_fleet', '/{index}/_fleet']],
  ['connectors are', ['/_connector'], 'use [_bulk]'],
  ['synonym sets are', ['/_synonyms'], 'use a token filter [synonym_graph] in the settings of the index'],
  ['search analyzers that are loaded again are', ['/{index}/_reload_search_analyzers'], 'use [_close] and [_open]'],
  ['finding the structure of a text is', ['/_text_structure']],
  [
    'simulating pipelines on indices is',
    ['/_ingest/_simulate', '/_ingest/{index}/_simulate'],
    'use [_ingest/pipeline/_simulate]',
  ],
  ['databases of addresses are', ['/_ingest/geoip', '/_ingest/ip_location']],
  ['enrich policies are', ['/_enrich']],
  ['Logstash pipelines are', ['/_logstash'], 'use [_ingest/pipeline]'],
  ['the management of index lifecycles is', ['/_ilm', '/{index}/_ilm', '/_lifecycle', '/{index}/_lifecycle']],
  ['the management of snapshot lifecycles is', ['/_slm'], 'use [_snapshot] at times of your choice'],
  [
    'data streams are',
    [
      ...['/_data_stream/_migrate', '/_data_stream/_modify', '/_data_stream/_promote', '/_data_stream/_stats'],
      ...['/_data_stream/{name}/_lifecycle', '/_data_stream/{name}/_mappings', '/_data_stream/{name}/_options'],
      ...['/_data_stream/{name}/_settings', '/_data_stream/{name}/_stats', '/_streams'],
    ],
    'use an index or an alias',
  ],
  ['rollups and downsampling are', ['/_rollup', '/{index}/_rollup', '/{index}/_rollup_search', '/{index}/_downsample']],
  [
    'transforms are',
    ['/_transform', '/_transform/_node_stats', '/_transform/_preview', '/_cat/transforms'],
    'use the aggregation [composite] in [_search]',
  ],
  ['Watcher is', ['/_watcher']],
  ['monitoring by collection is', ['/_monitoring'], 'use [metrics]'],
  ['profiling is', ['/_profiling']],
  [
    'replication across clusters is',
    ['/_ccr', '/{index}/_ccr', '/_resolve/cluster', '/_project', '/_project_routing', '/_security/cross_cluster'],
  ],
  [
    'anomaly detection is',
    [
      ...['/_ml/anomaly_detectors', '/_ml/calendars', '/_ml/datafeeds', '/_ml/filters', '/_ml/_delete_expired_data'],
      ...['/_ml/anomaly_detectors/_stats', '/_ml/datafeeds/_stats', '/_ml/datafeeds/_preview'],
      ...['/_ml/set_upgrade_mode', '/_cat/ml/anomaly_detectors', '/_cat/ml/datafeeds'],
    ],
  ],
  [
    'analysis of data frames is',
    [
      ...['/_ml/data_frame', '/_ml/data_frame/analytics/_explain', '/_ml/data_frame/analytics/_preview'],
      ...['/_ml/data_frame/analytics/_stats', '/_cat/ml/data_frame'],
    ],
  ],
  ['the memory of models by node is', ['/_ml/memory'], 'use [_ml/trained_models/_stats]'],
  ['a cache of inference is', ['/_ml/trained_models/{model}/deployment/cache']],
  [
    'users, roles and tokens are',
    [
      ...['/_security/user', '/_security/_query/user', '/_security/role', '/_security/_query/role'],
      ...['/_security/role_mapping', '/_security/privilege', '/_security/profile', '/_security/realm'],
      ...['/_security/service', '/_security/oauth2', '/_security/oidc', '/_security/saml', '/_security/enroll'],
      ...['/_security/delegate_pki', '/_security/settings', '/_security/stats', '/_security/api_key/grant'],
      ...['/_security/api_key/clone', '/_security/api_key/{ids}/_clear_cache'],
    ],
    'use [_security/api_key]',
  ],
  ['the list of certificates is', ['/_ssl']],
  [
    'other licenses are',
    ['/_license/basic_status', '/_license/start_basic', '/_license/start_trial', '/_license/trial_status'],
    'use [_license]',
  ],
  ['the use of features is', ['/_xpack/usage', '/_nodes/usage', '/_nodes/{node_id}/usage'], 'use [_nodes/stats]'],
  ['the list of features is', ['/_features', '/_capabilities'], 'use [_xpack]'],
  ['the list of figures by target is', ['/_info'], 'use [_nodes/stats]'],
  ['moving shards is', ['/_cluster/reroute', '/_cluster/allocation', '/_cluster/voting_config_exclusions']],
  ['the list of stored shards is', ['/_shard_stores', '/{index}/_shard_stores'], 'use [_cat/shards]'],
  ['scaling by policies is', ['/_autoscaling']],
  ['the table of circuit breakers is', ['/_cat/circuit_breaker'], 'use [_nodes/stats]'],
  [
    'managing nodes from afar is',
    [
      ...['/_nodes/reload_secure_settings', '/_nodes/{node_id}/reload_secure_settings', '/_nodes/shutdown'],
      ...['/_nodes/{node_id}/shutdown', '/_nodes/{node_id}/_repositories_metering'],
    ],
  ],
  [
    'searchable snapshots are',
    ['/_searchable_snapshots', '/{index}/_searchable_snapshots', '/_snapshot/{repository}/{snapshot}/_mount'],
    'use [_restore]',
  ],
  [
    'the analysis of repositories is',
    ['/_snapshot/{repository}/_analyze', '/_snapshot/{repository}/_verify_integrity'],
    'use [_verify]',
  ],
  ['dangling indices are', ['/_dangling']],
  ['frozen indices are', ['/{index}/_unfreeze']],
  ['the use of disk and fields by index is', ['/{index}/_disk_usage', '/{index}/_field_usage_stats'], 'use [_stats]'],
  [
    'Elasticsearch’s own migration is',
    [
      ...['/_migration/deprecations', '/{index}/_migration', '/_migration/reindex', '/_migration/system_features'],
      '/_create_from',
    ],
    'use [_reindex]',
  ],
];

interface Named {
  readonly path: readonly string[];
  readonly sentence: string;
}

/** The rows by the first segment that is a name of an endpoint: most requests have none that is here. */
const BY_HEAD: ReadonlyMap<string, readonly Named[]> = byHead();

function byHead(): Map<string, Named[]> {
  const all = new Map<string, Named[]>();
  for (const [what, paths, instead] of ELSEWHERE) {
    const sentence = `${what} not part of this server${instead === undefined ? '' : `, ${instead}`}`;
    for (const path of paths.map(segments))
      all.set(headOf(path), [...(all.get(headOf(path)) ?? []), { path, sentence }]);
  }
  return all;
}

/**
 * What is said of a path that only Elasticsearch has; undefined for any other.
 *
 * @param route a path of this server that has the method and fits too: it is meant unless Elasticsearch's has a name where it has a parameter
 */
export function elsewhere(path: string, route?: string): string | undefined {
  const asked = segments(path);
  const named = BY_HEAD.get(headOf(asked));
  if (named === undefined) return undefined;
  const served = route === undefined ? undefined : segments(route);
  const fits = ({ path: known }: Named): boolean =>
    known.every((segment, at) => {
      const given = asked[at];
      return given !== undefined && (isParameter(segment) || segment === given);
    }) &&
    (served === undefined || known.some((segment, at) => !isParameter(segment) && isParameter(served[at] ?? '')));
  return named.find(fits)?.sentence;
}

function isParameter(segment: string): boolean {
  return segment.startsWith('{');
}

/** The first segment that can be no index: the first, or else the second one. */
function headOf(path: readonly string[]): string {
  const [first = '', second = ''] = path;
  return first.startsWith('_') && first !== '_all' ? first : second;
}

function segments(path: string): readonly string[] {
  return path.split('/').filter((segment) => segment !== '');
}
