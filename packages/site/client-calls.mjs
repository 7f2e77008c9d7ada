// Which method of Elastic's client for JavaScript sends a request, and how its parameters are called there.

/** A request's method and path, with the names of the path's parts; the client's method; the parameter for a body as a whole. */
const CALLS = [
  ['GET', '/', 'info'],
  ['POST', '/_aliases', 'indices.updateAliases'],
  ['DELETE', '/_async_search/{id}', 'asyncSearch.delete'],
  ['GET', '/_async_search/{id}', 'asyncSearch.get'],
  ['GET', '/_cat/indices/{index}', 'cat.indices'],
  ['POST', '/_inference/{task_type}/{inference_id}', 'inference.inference'],
  ['PUT', '/_inference/{task_type}/{inference_id}', 'inference.put', 'inference_config'],
  ['POST', '/_ingest/pipeline/_simulate', 'ingest.simulate'],
  ['PUT', '/_ingest/pipeline/{id}', 'ingest.putPipeline'],
  ['POST', '/_ingest/pipeline/{id}/_simulate', 'ingest.simulate'],
  ['POST', '/_ml/trained_models/{model_id}/deployment/_start', 'ml.startTrainedModelDeployment'],
  ['POST', '/_ml/trained_models/{model_id}/deployment/_update', 'ml.updateTrainedModelDeployment'],
  ['GET', '/_ml/trained_models/{model_id}/_stats', 'ml.getTrainedModelsStats'],
  ['POST', '/_mtermvectors', 'mtermvectors'],
  ['GET', '/_nodes/stats/{metric}', 'nodes.stats'],
  ['DELETE', '/_pit', 'closePointInTime'],
  ['POST', '/_reindex', 'reindex'],
  ['POST', '/_render/template', 'renderSearchTemplate'],
  ['DELETE', '/_scripts/{id}', 'deleteScript'],
  ['GET', '/_scripts/{id}', 'getScript'],
  ['PUT', '/_scripts/{id}', 'putScript'],
  ['POST', '/_search', 'search'],
  ['GET', '/_security/_authenticate', 'security.authenticate'],
  ['POST', '/_security/_query/api_key', 'security.queryApiKeys'],
  ['DELETE', '/_security/api_key', 'security.invalidateApiKey'],
  ['GET', '/_security/api_key', 'security.getApiKey'],
  ['PUT', '/_security/api_key', 'security.createApiKey'],
  ['PUT', '/_security/api_key/{id}', 'security.updateApiKey'],
  ['PUT', '/_snapshot/{name}', 'snapshot.createRepository', 'repository'],
  ['DELETE', '/_snapshot/{repository}/{snapshot}', 'snapshot.delete'],
  ['GET', '/_snapshot/{repository}/{snapshot}', 'snapshot.get'],
  ['PUT', '/_snapshot/{repository}/{snapshot}', 'snapshot.create'],
  ['POST', '/_snapshot/{repository}/{snapshot}/_restore', 'snapshot.restore'],
  ['GET', '/_snapshot/{repository}/{snapshot}/_status', 'snapshot.status'],
  ['POST', '/_snapshot/{name}/_verify', 'snapshot.verifyRepository'],
  ['GET', '/_tasks', 'tasks.list'],
  ['GET', '/_tasks/{task_id}', 'tasks.get'],
  ['DELETE', '/{index}', 'indices.delete'],
  ['POST', '/{index}/_async_search', 'asyncSearch.submit'],
  ['PUT', '/{index}', 'indices.create'],
  ['GET', '/{index}/_count', 'count'],
  ['POST', '/{index}/_count', 'count'],
  ['POST', '/{index}/_delete_by_query', 'deleteByQuery'],
  ['POST', '/{index}/_doc', 'index', 'document'],
  ['GET', '/{index}/_doc/{id}', 'get'],
  ['PUT', '/{index}/_doc/{id}', 'index', 'document'],
  ['GET', '/{index}/_explain/{id}', 'explain'],
  ['POST', '/{index}/_explain/{id}', 'explain'],
  ['POST', '/{index}/_forcemerge', 'indices.forcemerge'],
  ['GET', '/{index}/_mapping', 'indices.getMapping'],
  ['PUT', '/{index}/_mapping', 'indices.putMapping'],
  ['POST', '/{index}/_mtermvectors', 'mtermvectors'],
  ['POST', '/{index}/_pit', 'openPointInTime'],
  ['POST', '/{alias}/_rollover', 'indices.rollover'],
  ['GET', '/{index}/_search', 'search'],
  ['POST', '/{index}/_search', 'search'],
  ['POST', '/{index}/_search/template', 'searchTemplate'],
  ['PUT', '/{index}/_settings', 'indices.putSettings', 'settings'],
  ['GET', '/{index}/_termvectors/{id}', 'termvectors'],
  ['POST', '/{index}/_termvectors', 'termvectors'],
  ['POST', '/{index}/_termvectors/{id}', 'termvectors'],
  ['POST', '/{index}/_update/{id}', 'update'],
  ['POST', '/{index}/_update_by_query', 'updateByQuery'],
];

/** Members of bodies that Elasticsearch does not have: the client sends them only with the whole `body`. */
const BEYOND = new Set(['include_models']);

/**
 * The call that sends a request.
 *
 * @returns {{ name: string, params: Record<string, unknown> } | undefined} undefined where the client has no method for it
 */
export function clientCall({ method, path, body }) {
  const [place, query = ''] = path.split('?');
  const segments = place.split('/').map(decodeURIComponent);
  for (const [itsMethod, pattern, name, whole] of CALLS) {
    const parts = itsMethod === method ? partsOf(pattern.split('/'), segments) : undefined;
    if (parts === undefined) continue;
    const named = { ...parts, ...queryOf(query) };
    return { name, params: { ...named, ...membersOf(body, whole, named) } };
  }
  return undefined;
}

/** The parts of a path by their names; undefined where it is another path. No index begins with `_`. */
function partsOf(pattern, segments) {
  if (pattern.length !== segments.length) return undefined;
  const parts = {};
  for (const [at, expected] of pattern.entries()) {
    const [, name] = /^\{(\w+)\}$/.exec(expected) ?? [];
    if (name === undefined ? segments[at] !== expected : at === 1 && segments[at].startsWith('_')) return undefined;
    if (name !== undefined) parts[name] = segments[at];
  }
  return parts;
}

function queryOf(query) {
  const named = { '': true, true: true, false: false };
  const valueOf = (text) => named[text] ?? (/^\d+$/.test(text) ? Number(text) : text);
  return Object.fromEntries([...new URLSearchParams(query)].map(([name, text]) => [name, valueOf(text)]));
}

function membersOf(body, whole, named) {
  if (body === undefined) return {};
  if (whole !== undefined) return { [whole]: body };
  return Object.keys(body).some((name) => BEYOND.has(name) || name in named) ? { body } : body;
}
