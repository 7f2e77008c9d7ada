// Writes of single documents and bulks. A client writes only documents of its own, so that their order is known.
import { dynamicField, makePatch, makeSource, patched } from './documents.mjs';
import { errorType } from './world.mjs';

const IDS_PER_CLIENT = 12;

const refreshOf = (random) =>
  random.weighted([
    [6, ''],
    [2, 'refresh=false'],
    [1, 'refresh=true'],
    [1, 'refresh=wait_for'],
  ]);

const query = (...parameters) => {
  const given = parameters.filter((parameter) => parameter !== '');
  return given.length === 0 ? '' : `?${given.join('&')}`;
};

/** An index that a client may write its documents to. */
export function writable(client) {
  const indices = client.model.live.filter((index) => !index.lockedBy.has(client.number));
  const available = indices.filter((index) => index.available);
  // Mostly those that take writes: refusals are soon told.
  return client.random.pick(available.length > 0 && client.random.chance(0.93) ? available : indices);
}

const idOf = (client) => `c${client.number}-${client.random.below(IDS_PER_CLIENT)}`;

/** A new source, now and then with a field that the mapping does not know. */
function newSource(client, index) {
  const source = makeSource(client.random, index.shape, `c${client.number}`);
  if (index.dynamic && client.random.chance(0.08)) {
    const [name, value] = dynamicField(client.random);
    source[name] = value;
  }
  // Not mapped, so it may hold anything, until `narrowMapping` says that it is a number.
  if (!index.dynamic && index.owner === client.number) {
    const name = `u_integer_${client.random.below(5)}`;
    if (!index.narrowed?.has(name)) source[name] = 'abc';
  }
  return source;
}

/** The fields of a source that was acknowledged must be in the mapping. */
function noteFields(index, source) {
  for (const name of Object.keys(JSON.parse(source))) {
    const type = /^d_([a-z]+)_/.exec(name)?.[1];
    if (type !== undefined && index.dynamic) index.fields.set(name, type);
  }
}

/** The effect of an acknowledged write, checked against what was there before. */
function acknowledged(world, index, id, before, register, answer) {
  const { _version: version, _seq_no: seqNo } = answer;
  const state = register.oldest;
  const owner = index.seqNos.get(seqNo);
  if (answer.result === 'noop') {
    register.refuse();
    return;
  }
  if (owner !== undefined) world.fail('sequence number given twice', { index, id, seqNo, before: owner });
  index.seqNos.set(seqNo, id);
  if (before !== null && before?.version !== undefined && version !== before.version + 1) {
    world.fail('wrong version in an answer', { index, id, expected: before.version + 1, found: version });
  }
  if (state !== null) noteFields(index, state.source);
  if (answer.result === 'deleted' || answer.result === 'not_found') register.acknowledge();
  else register.acknowledge({ version, seqNo });
}

/** Sends one write of one document. */
function writeOne(client, index, id, { method, path, body, state, refusal }) {
  const register = index.doc(id);
  const before = register.latest;
  register.begin(state);
  return client.world.perform(client, {
    method,
    path,
    body,
    registers: [register],
    indices: [index],
    ids: [id],
    writes: true,
    refusal,
    settle: ({ body: answer }) => acknowledged(client.world, index, id, before, register, answer),
  });
}

/** The name that a request uses: the index's own, or the client's alias where it stands for it. */
function nameOf(client, index) {
  const alias = client.model.aliases.get(`alias-${client.number}`);
  return alias?.settled && alias.latest === index.name && client.random.chance(0.2)
    ? `alias-${client.number}`
    : index.name;
}

const fresh = (source) => ({ source: JSON.stringify(source), version: undefined, seqNo: undefined });

/** `PUT _doc`, sometimes on condition of the sequence number, sometimes on a wrong one. */
async function indexDocument(client) {
  const { random } = client;
  const index = writable(client);
  const id = idOf(client);
  if (index === undefined || !index.doc(id).settled) return false;
  const source = newSource(client, index);
  const known = index.doc(id).latest;
  const conditional = known?.seqNo !== undefined && random.chance(0.2);
  const wrong = conditional && random.chance(0.25);
  const condition = conditional ? `if_seq_no=${known.seqNo + (wrong ? 1_000_000 : 0)}&if_primary_term=1` : '';
  const done = await writeOne(client, index, id, {
    method: 'PUT',
    path: `/${nameOf(client, index)}/_doc/${id}${query(refreshOf(random), condition)}`,
    body: source,
    state: fresh(source),
    refusal: ({ body }) => wrong && errorType(body) === 'version_conflict_engine_exception',
  });
  if (done && wrong) client.world.fail('written on a wrong condition', { index, id });
  return true;
}

async function createDocument(client) {
  const index = writable(client);
  const id = idOf(client);
  if (index === undefined || !index.doc(id).settled) return false;
  const source = newSource(client, index);
  const there = index.doc(id).latest !== null;
  const done = await writeOne(client, index, id, {
    method: 'PUT',
    path: `/${nameOf(client, index)}/_create/${id}${query(refreshOf(client.random))}`,
    body: source,
    state: fresh(source),
    refusal: ({ body }) => there && errorType(body) === 'version_conflict_engine_exception',
  });
  if (done && there) client.world.fail('created a document that is there', { index, id });
  return true;
}

async function updateDocument(client) {
  const index = writable(client);
  const id = idOf(client);
  if (index === undefined || !index.dynamic || !index.doc(id).settled) return false;
  const known = index.doc(id).latest;
  const patch = makePatch(client.random, index.shape);
  const done = await writeOne(client, index, id, {
    method: 'POST',
    path: `/${nameOf(client, index)}/_update/${id}${query(refreshOf(client.random))}`,
    body: { doc: patch, detect_noop: false },
    state: known === null ? null : { source: patched(known.source, patch), version: undefined, seqNo: undefined },
    refusal: ({ body }) => known === null && errorType(body) === 'document_missing_exception',
  });
  if (done && known === null) client.world.fail('updated a document that is not there', { index, id });
  return true;
}

async function deleteDocument(client) {
  const index = writable(client);
  const id = idOf(client);
  if (index === undefined || !index.doc(id).settled) return false;
  await writeOne(client, index, id, {
    method: 'DELETE',
    path: `/${nameOf(client, index)}/_doc/${id}${query(refreshOf(client.random))}`,
    state: null,
  });
  return true;
}

/** One item of a bulk: its lines, and what it would make of its document. */
function bulkItem(client, index, id, seen) {
  const { random } = client;
  const address = { _index: index.name, _id: id };
  const known = index.doc(id).latest;
  // A document that is in the bulk already: only what does not depend on the earlier item.
  const kind = seen
    ? 'index'
    : random.weighted([
        [5, 'index'],
        [2, 'create'],
        [known === null || !index.dynamic ? 0 : 3, 'update'],
        [2, 'delete'],
      ]);
  if (kind === 'delete') return { kind, known, state: null, lines: [{ delete: address }] };
  if (kind === 'update') {
    const patch = makePatch(random, index.shape);
    const state = { source: patched(known.source, patch), version: undefined, seqNo: undefined };
    return { kind, known, state, lines: [{ update: address }, { doc: patch, detect_noop: false }] };
  }
  const source = newSource(client, index);
  return { kind, known, state: fresh(source), lines: [{ [kind]: address }, source] };
}

async function bulk(client) {
  const { random, world } = client;
  const items = [];
  const seen = new Set();
  for (let left = 2 + random.below(20); left > 0; left -= 1) {
    const index = writable(client);
    const id = idOf(client);
    const key = `${index?.name}/${id}`;
    if (index === undefined || (!index.doc(id).settled && !seen.has(key))) continue;
    const item = { index, id, register: index.doc(id), ...bulkItem(client, index, id, seen.has(key)) };
    // Whether an earlier item succeeded is not known here: what follows from it is left out.
    if (seen.has(key)) item.known = undefined;
    seen.add(key);
    item.register.begin(item.state);
    items.push(item);
  }
  if (items.length === 0) return false;
  await world.perform(client, {
    method: 'POST',
    path: `/_bulk${query(refreshOf(random))}`,
    body: items.map(({ lines }) => lines.map((line) => `${JSON.stringify(line)}\n`).join('')).join(''),
    registers: items.map(({ register }) => register),
    indices: [...new Set(items.map(({ index }) => index))],
    ids: [...new Set(items.map(({ id }) => id))],
    settle: ({ body }, disturbed) => {
      items.forEach((item, n) => settleItem(world, item, Object.values(body.items[n])[0], disturbed));
    },
  });
  return true;
}

function settleItem(world, { index, id, register, kind, known }, answer, disturbed) {
  if (answer.error === undefined) {
    acknowledged(world, index, id, known, register, answer);
    return;
  }
  register.refuse();
  const { type } = answer.error;
  const conflict = kind === 'create' && known !== null && type === 'version_conflict_engine_exception';
  const gone = /^(index_closed|cluster_block|index_not_found)_exception$/.test(type);
  if (conflict || (disturbed && gone)) return;
  world.fail('unexpected answer', { index, id, answer: JSON.stringify(answer) });
}

/** `[weight, name, operation]` */
export const DOCUMENT_OPERATIONS = [
  [14, 'index', indexDocument],
  [5, 'create', createDocument],
  [9, 'update', updateDocument],
  [6, 'delete', deleteDocument],
  [14, 'bulk', bulk],
];
