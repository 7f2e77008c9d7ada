// The clients of a soak: some search, some write documents that are theirs alone, one looks after indices and snapshots.
import { MISTAKES, SEARCHES, makeSource } from './requests.mjs';

/** The indices that documents are written to. */
export const INDICES = ['soak-a', 'soak-b'];
/** Documents that a writer may have in an index: they are replaced and deleted, never more. */
export const IDS = 600;
/** Documents that a copy through the pipeline takes. */
const COPIED = 120;

/** Milliseconds from one thing that a searcher does to the next, and from one that a writer does. */
const SEARCH_EVERY = 10;
const WRITE_EVERY = 40;
const KEEP_EVERY = 500;

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/**
 * Waits for the next turn of a client. The load is the same all the time, as long as the machine can carry it: what a server needs
 * follows from it, and machines are faster at one time than at another.
 */
function turns(every) {
  let next = performance.now();
  return async () => {
    // What was missed is not caught up with.
    next = Math.max(next + every, performance.now());
    await pause(next - performance.now());
  };
}

/** Searches of all kinds, contexts opened and closed, what is cut off and what is wrong. */
export async function searcher(world, random) {
  const turn = turns(SEARCH_EVERY);
  while (!world.over) {
    await turn();
    const kind = random.weighted([
      [20, search],
      [2, scroll],
      [2, pointInTime],
      [2, mistake],
      [2, cutOff],
      [1, reads],
    ]);
    await kind(world, random);
  }
}

async function search(world, random) {
  const { index, body } = SEARCHES[random.pick(Object.keys(SEARCHES))];
  const answer = await world.ask({ method: 'POST', path: `/${index}/_search`, body: body(random) });
  if (answer === undefined) return;
  world.searched(answer.ms);
  if (answer.body.timed_out !== false || answer.body._shards.failed > 0) {
    world.unexpected.push(`a search of ${index} was not whole: ${answer.text.slice(0, 200)}`);
  }
}

async function scroll(world, random) {
  const query = { query: { match_all: {} }, size: 40 };
  let answer = await world.ask({ method: 'POST', path: '/soak-a/_search?scroll=5s', body: query });
  for (let pages = random.below(3); pages > 0 && answer !== undefined; pages -= 1) {
    const body = { scroll: '5s', scroll_id: answer.body._scroll_id };
    answer = await world.ask({ method: 'POST', path: '/_search/scroll', body });
  }
  // Some are forgotten: their time ends.
  if (answer === undefined || random.chance(0.2)) return;
  await world.ask({ method: 'DELETE', path: '/_search/scroll', body: { scroll_id: answer.body._scroll_id } });
}

async function pointInTime(world, random) {
  const opened = await world.ask({ method: 'POST', path: '/soak-a,soak-b/_pit?keep_alive=5s' });
  if (opened === undefined) return;
  const { id } = opened.body;
  const body = { pit: { id, keep_alive: '5s' }, query: { term: { tag: 'red' } }, sort: ['n'], size: 30 };
  await world.ask({ method: 'POST', path: '/_search', body });
  if (random.chance(0.2)) return;
  await world.ask({ method: 'DELETE', path: '/_pit', body: { id } });
}

async function mistake(world, random) {
  const [status, request] = random.pick(MISTAKES);
  await world.ask(request, [status]);
}

/** The connection closes while a search is answered, or a bulk is carried out: nobody relies on the documents of `soak-cut`. */
async function cutOff(world, random) {
  const cutAfterMs = random.below(15);
  const { index, body } = SEARCHES[random.pick(Object.keys(SEARCHES))];
  const lines = Array.from({ length: 50 }, () => {
    return `${JSON.stringify({ index: { _id: String(random.below(200)) } })}\n${JSON.stringify(makeSource(random, 0))}\n`;
  });
  const bulk = { method: 'POST', path: '/soak-cut/_bulk', text: lines.join('') };
  const request = random.chance(0.5) ? { method: 'POST', path: `/${index}/_search`, body: body(random) } : bulk;
  const { status } = await world.send({ ...request, cutAfterMs });
  if (status !== 'cut' && status >= 500) world.failures.push(`${request.path}, cut off, answered ${status}`);
}

async function reads(world, random) {
  const ids = Array.from({ length: 20 }, () => `${random.below(2)}-${random.below(IDS)}`);
  await world.ask({ method: 'POST', path: '/soak-a/_mget', body: { ids } });
  await world.ask({ method: 'POST', path: '/soak-b/_count', body: { query: { term: { tag: 'blue' } } } });
}

/** Writes documents with ids of its own, so that what should be there is known without asking. */
export async function writer(world, random, number) {
  let n = 0;
  const id = () => `${number}-${random.below(IDS)}`;
  const turn = turns(WRITE_EVERY);
  while (!world.over) {
    await turn();
    const index = random.pick(INDICES);
    const have = world.documents.get(index);
    n += 1;
    const kind = random.weighted([
      [6, 'bulk'],
      [3, 'index'],
      [2, 'update'],
      [2, 'delete'],
      [1, 'deleteByQuery'],
    ]);
    if (kind === 'bulk') await bulk(world, random, { index, have, n, id });
    if (kind === 'index') await indexOne(world, random, { index, have, n, id: id() });
    if (kind === 'update') await updateOne(world, random, { index, have, n, id: id() });
    if (kind === 'delete') await deleteOne(world, { index, have, id: id() });
    if (kind === 'deleteByQuery') await deleteSome(world, { index, have, ids: [id(), id(), id()] });
  }
}

async function bulk(world, random, { index, have, n, id }) {
  const actions = Array.from({ length: 30 + random.below(40) }, () => [
    random.weighted([
      [6, 'index'],
      [2, 'update'],
      [2, 'delete'],
    ]),
    id(),
  ]);
  const text = actions.map(([kind, _id]) => {
    const head = `${JSON.stringify({ [kind]: { _id } })}\n`;
    if (kind === 'delete') return head;
    return head + `${JSON.stringify(kind === 'index' ? makeSource(random, n) : { doc: { n } })}\n`;
  });
  const answer = await world.ask({ method: 'POST', path: `/${index}/_bulk`, text: text.join('') });
  if (answer === undefined) return;
  for (const [place, [kind, _id]] of actions.entries()) {
    const item = answer.body.items[place][kind];
    const wanted = kind === 'index' ? (have.has(_id) ? 200 : 201) : have.has(_id) ? 200 : 404;
    if (item.status !== wanted) world.refused(`bulk ${kind} of ${_id}`, item);
    if (item.status >= 300) continue;
    if (kind === 'delete') have.delete(_id);
    else have.set(_id, n);
  }
}

async function indexOne(world, random, { index, have, n, id }) {
  const refresh = random.pick(['', '?refresh=true', '?refresh=wait_for']);
  const request = { method: 'PUT', path: `/${index}/_doc/${id}${refresh}`, body: makeSource(random, n) };
  if ((await world.ask(request, [have.has(id) ? 200 : 201])) !== undefined) have.set(id, n);
}

async function updateOne(world, random, { index, have, n, id }) {
  const body = random.chance(0.5) ? { doc: { n } } : { doc: { n }, upsert: makeSource(random, n) };
  const wanted = have.has(id) ? 200 : body.upsert === undefined ? 404 : 201;
  const answer = await world.ask({ method: 'POST', path: `/${index}/_update/${id}`, body }, [wanted]);
  if (answer !== undefined && wanted !== 404) have.set(id, n);
}

async function deleteOne(world, { index, have, id }) {
  const answer = await world.ask({ method: 'DELETE', path: `/${index}/_doc/${id}` }, [have.has(id) ? 200 : 404]);
  if (answer !== undefined) have.delete(id);
}

async function deleteSome(world, { index, have, ids }) {
  await world.ask({ method: 'POST', path: `/${index}/_refresh` });
  const body = { query: { ids: { values: ids } } };
  const answer = await world.ask({ method: 'POST', path: `/${index}/_delete_by_query?refresh=true`, body });
  if (answer === undefined) return;
  const there = new Set(ids.filter((id) => have.has(id)));
  if (answer.body.deleted !== there.size) {
    world.unexpected.push(`_delete_by_query of ${index} deleted ${answer.body.deleted} instead of ${there.size}`);
  }
  for (const id of there) have.delete(id);
}

/** Copies through the pipeline, merges, snapshots, indices made and removed, aliases moved, figures asked for. */
export async function keeper(world, random) {
  const state = { copies: 0, snapshots: 0, snapshot: undefined, embedded: 'soak-embedded-0' };
  const turn = turns(KEEP_EVERY);
  while (!world.over) {
    await turn();
    const kind = random.weighted([
      [2, copyAndSwap],
      [2, merge],
      [2, snapshot],
      [3, passingIndex],
      [3, figures],
    ]);
    await kind(world, random, state);
  }
}

/** A new index, filled through the pipeline, takes the alias of the one before, which goes. */
async function copyAndSwap(world, random, state) {
  const { embedded: old } = state;
  state.copies += 1;
  const index = `soak-embedded-${state.copies}`;
  await world.ask({ method: 'PUT', path: `/${index}`, body: EMBEDDED });
  const body = { max_docs: COPIED, source: { index: 'soak-a' }, dest: { index, pipeline: 'soak-embed' } };
  const copied = await world.ask({ method: 'POST', path: '/_reindex?refresh=true', body });
  if (copied !== undefined && copied.body.failures.length > 0) {
    world.unexpected.push(`_reindex failed: ${copied.text.slice(0, 300)}`);
  }
  const actions = [{ remove_index: { index: old } }, { add: { index, alias: 'soak-embedded' } }];
  if ((await world.ask({ method: 'POST', path: '/_aliases', body: { actions } })) !== undefined) state.embedded = index;
}

/** Of an index that is filled through the pipeline. */
export const EMBEDDED = {
  settings: { number_of_replicas: 0 },
  mappings: {
    properties: {
      body: { type: 'text' },
      tag: { type: 'keyword' },
      n: { type: 'integer' },
      at: { type: 'date' },
      embedding: { type: 'sparse_vector' },
    },
  },
};

async function merge(world, random) {
  await world.ask({ method: 'POST', path: `/${random.pick(INDICES)}/_forcemerge?max_num_segments=1` });
}

async function snapshot(world, random, state) {
  state.snapshots += 1;
  const path = `/_snapshot/soak/s${state.snapshots}`;
  const body = { indices: 'soak-a,soak-b', include_global_state: random.chance(0.5) };
  if ((await world.ask({ method: 'PUT', path: `${path}?wait_for_completion=true`, body })) === undefined) return;
  if (state.snapshot !== undefined) await world.ask({ method: 'DELETE', path: state.snapshot });
  state.snapshot = path;
}

async function passingIndex(world, random) {
  const name = `passing-${random.below(1_000_000)}`;
  await world.ask({ method: 'PUT', path: `/${name}`, body: { mappings: { properties: { n: { type: 'integer' } } } } });
  await world.ask({ method: 'PUT', path: `/${name}/_doc/1?refresh=true`, body: makeSource(random, 1) });
  await world.ask({ method: 'POST', path: `/${name}/_search`, body: { query: { match_all: {} } } });
  await world.ask({ method: 'DELETE', path: `/${name}` });
}

async function figures(world, random) {
  const path = random.pick([
    '/_cluster/health',
    '/_cat/indices?format=json',
    '/soak-*/_stats',
    '/_nodes/stats',
    '/soak-*/_settings',
    '/soak-a/_mapping',
    '/_cluster/state',
    '/_tasks',
  ]);
  await world.ask({ method: 'GET', path });
}
