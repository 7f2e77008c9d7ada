// Leaves the server as it was before a test.

/** What tests leave behind: where it is listed, the names in that list, and how one is deleted. */
const LEFT_BEHIND = [
  ['/_cat/indices?format=json&h=index&expand_wildcards=all', (rows) => rows.map(({ index }) => index), ''],
  ['/_index_template', ({ index_templates: rows }) => rows.map(({ name }) => name), '/_index_template'],
  ['/_component_template', ({ component_templates: rows }) => rows.map(({ name }) => name), '/_component_template'],
  ['/_template', (templates) => Object.keys(templates), '/_template'],
  ['/_ingest/pipeline', (pipelines) => Object.keys(pipelines), '/_ingest/pipeline'],
];

/** Deletes all indices, templates and pipelines, and ends all scrolls. */
export async function cleanUp(send) {
  for (const [list, namesOf, folder] of LEFT_BEHIND) {
    const { status, body } = await send({ method: 'GET', path: list });
    // Nothing there is an error of some lists.
    if (status === 404) continue;
    if (status !== 200) throw new Error(`GET ${list} answered ${status}`);
    for (const name of namesOf(body)) await remove(send, `${folder}/${encodeURIComponent(name)}`);
  }
  await send({ method: 'DELETE', path: '/_search/scroll/_all' });
  await resetSettings(send);
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
  if (Object.keys(reset).length === 0) return;
  await send({
    method: 'PUT',
    path: '/_cluster/settings',
    body: JSON.stringify(reset),
    contentType: 'application/json',
  });
}
