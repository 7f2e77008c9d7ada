// Leaves the server as it was before a test.
/** What tests leave behind: where it is listed, the names in that list, and how one is deleted. */
const LEFT_BEHIND = [
  ['/_cat/indices?format=json&h=index&expand_wildcards=all', (rows) => rows.map(({ index }) => index), ''],
  ['/_index_template', ({ index_templates: rows }) => rows.map(({ name }) => name), '/_index_template'],
  ['/_component_template', ({ component_templates: rows }) => rows.map(({ name }) => name), '/_component_template'],
  ['/_template', (templates) => Object.keys(templates), '/_template'],
  ['/_ingest/pipeline', (pipelines) => Object.keys(pipelines), '/_ingest/pipeline'],
];

/** Deletes all indices, templates, pipelines, snapshots and repositories, and ends all scrolls. */
export async function cleanUp(send) {
  for (const [list, namesOf, folder] of LEFT_BEHIND) {
    const { status, body } = await send({ method: 'GET', path: list });
    // Nothing there is an error of some lists.
    if (status === 404) continue;
    if (status !== 200) throw new Error(`GET ${list} answered ${status}`);
    for (const name of namesOf(body)) await remove(send, `${folder}/${encodeURIComponent(name)}`);
  }
  await send({ method: 'DELETE', path: '/_search/scroll/_all' });
  await removeRepositories(send);
  await resetSettings(send);
}

/** Deletes snapshots and repositories: a repository of the next test may have the same name and place. */
async function removeRepositories(send) {
  const { status, body } = await send({ method: 'GET', path: '/_snapshot' });
  if (status !== 200) return;
  for (const repository of Object.keys(body)) {
    const path = `/_snapshot/${encodeURIComponent(repository)}`;
    await send({ method: 'DELETE', path: `${path}/*` });
    await send({ method: 'DELETE', path });
  }
}

async function remove(send, path) {
  const { status } = await send({ method: 'DELETE', path });
  if (status !== 403) return;
  // A test made the index read-only.
  const unblocked = JSON.stringify({ 'index.blocks.read_only': null, 'index.blocks.read_only_allow_delete': null });
  await send({ method: 'PUT', path: `${path}/_settings`, body: unblocked, contentType: 'application/json' });
  await send({ method: 'DELETE', path });
}

async function resetSettings(send) {
  const { status, body } = await send({ method: 'GET', path: '/_cluster/settings?flat_settings=true' });
  if (status !== 200) return;
  const reset = Object.fromEntries(
    ['persistent', 'transient']
      .map((kind) => [kind, Object.fromEntries(Object.keys(body[kind] ?? {}).map((key) => [key, null]))])
      .filter(([, settings]) => Object.keys(settings).length > 0),
  );
  if (Object.keys(reset).length > 0) await putSettings(send, reset);
}

/**
 * Lets patterns stand for what is deleted, opened or closed, for tests that take it for granted: version 8 needs a setting for that, which
 * the nodes of Elasticsearch's own runs have in their files.
 */
export async function allowPatterns(send) {
  await putSettings(send, { persistent: { 'action.destructive_requires_name': 'false' } });
}

function putSettings(send, settings) {
  const body = JSON.stringify(settings);
  return send({ method: 'PUT', path: '/_cluster/settings', body, contentType: 'application/json' });
}
