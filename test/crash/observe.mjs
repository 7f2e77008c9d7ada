// What the server holds, read over HTTP.
const PAGE = 500;
/** Documents that are also got one by one. */
const SINGLE_GETS = 2;

async function ok(send, method, path, body, statuses = [200]) {
  const answer = await send(method, path, body);
  if (!statuses.includes(answer.status)) throw new Error(`${method} ${path} answered ${answer.status}: ${answer.text}`);
  return answer.body;
}

/** Everything but documents. */
export async function observeCatalogue(send) {
  const [health, indices, aliases, mappings, settings, pipelines, templates] = await Promise.all([
    ok(send, 'GET', '/_cluster/health'),
    ok(send, 'GET', '/_cat/indices?format=json&expand_wildcards=all'),
    ok(send, 'GET', '/_alias?expand_wildcards=all'),
    ok(send, 'GET', '/_all/_mapping?expand_wildcards=all'),
    ok(send, 'GET', '/_all/_settings?expand_wildcards=all&flat_settings=true'),
    ok(send, 'GET', '/_ingest/pipeline', undefined, [200, 404]),
    ok(send, 'GET', '/_index_template'),
  ]);
  const aliasesOf = new Map();
  for (const [index, { aliases: names }] of Object.entries(aliases)) {
    for (const name of Object.keys(names)) aliasesOf.set(name, [...(aliasesOf.get(name) ?? []), index]);
  }
  return {
    health: health.status,
    indices: new Map(
      indices.map(({ index, status, health: indexHealth }) => [
        index,
        {
          open: status === 'open',
          health: indexHealth,
          fields: mappings[index]?.mappings.properties ?? {},
          settings: settings[index]?.settings ?? {},
        },
      ]),
    ),
    aliases: aliasesOf,
    pipelines: new Map(Object.entries(pipelines).map(([name, { description }]) => [name, description])),
    templates: new Map(
      templates.index_templates.map(({ name, index_template: template }) => [
        name,
        template.template.settings.index.refresh_interval,
      ]),
    ),
  };
}

const stateOf = ({ _source, _version, _seq_no }) => ({
  source: JSON.stringify(_source),
  version: _version,
  seqNo: _seq_no,
});

/**
 * The documents of one index, as searches and gets show them after a refresh.
 *
 * @param {string[]} ids which are got, whether they should be there or not
 * @param {object[]} queries which are answered with sets of ids
 */
export async function observeDocuments(send, index, ids, queries) {
  const found = new Map();
  const twice = [];
  let total;
  for (let from = 0; ; from += PAGE) {
    const { hits } = await ok(send, 'POST', `/${index}/_search`, {
      from,
      size: PAGE,
      version: true,
      seq_no_primary_term: true,
      track_total_hits: true,
      sort: [{ _doc: 'asc' }],
    });
    total = hits.total.value;
    for (const hit of hits.hits) {
      if (found.has(hit._id)) twice.push(hit._id);
      found.set(hit._id, stateOf(hit));
    }
    if (hits.hits.length < PAGE) break;
  }
  const { count } = await ok(send, 'GET', `/${index}/_count`);
  const got = new Map();
  const wanted = [...new Set([...ids, ...found.keys()])];
  if (wanted.length > 0) {
    const { docs } = await ok(send, 'POST', `/${index}/_mget`, { ids: wanted });
    for (const doc of docs) got.set(doc._id, doc.found ? stateOf(doc) : null);
  }
  for (const id of wanted.slice(0, SINGLE_GETS)) {
    const { body } = await send('GET', `/${index}/_doc/${id}`);
    got.set(id, body.found ? stateOf(body) : null);
  }
  const searches = [];
  if (queries.length > 0) {
    const lines = queries.flatMap((query) => [{ index }, { query, size: 10_000, _source: false }]);
    const { responses } = await ok(
      send,
      'POST',
      '/_msearch',
      lines.map((line) => `${JSON.stringify(line)}\n`).join(''),
    );
    responses.forEach((response, n) => {
      if (response.hits === undefined) throw new Error(`search of ${index}: ${JSON.stringify(response)}`);
      searches.push({
        query: queries[n],
        ids: response.hits.hits.map(({ _id }) => _id),
        total: response.hits.total.value,
      });
    });
  }
  return { found, twice, total, count, got, searches };
}
