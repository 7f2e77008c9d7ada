// Operations on indices as a whole: creation, deletion, copies, blocks, mappings, settings, maintenance, the upgrade.
import { PROPERTIES } from './documents.mjs';
import { IndexModel } from './model.mjs';
import { Register } from './register.mjs';
import { errorType } from './world.mjs';

const VOLATILE_PER_CLIENT = 2;

/** Settings that a client changes; which one is decided by the index, so that several clients change one index at once. */
const SETTINGS = [
  ['refresh_interval', ['100ms', '200ms', '300ms', '1s']],
  ['max_result_window', ['10000', '12000', '15000', '20000']],
];

const own = (client) => client.model.live.filter((index) => index.owner === client.number);
const ownVolatile = (client) =>
  own(client).filter(
    ({ volatile, lockedBy, open, blocked, exists }) =>
      volatile && !lockedBy.has(client.number) && open.settled && blocked.settled && exists.settled,
  );

/** Marks the beginning and the end of what may make other clients' requests fail. */
async function disturbing(index, work) {
  index.epoch += 1;
  try {
    return await work();
  } finally {
    index.epoch += 1;
  }
}

const isAbsent = ({ users, lockedBy }) => users.size === 0 && lockedBy.size === 0;

async function createIndex(client) {
  const { random, model, world } = client;
  const mine = [...model.indices.values()].filter((index) => index.volatile && index.owner === client.number);
  if (mine.filter((index) => !index.exists.settled || index.exists.latest).length >= VOLATILE_PER_CLIENT) return false;
  // A name again, once nobody writes to its earlier life, or a new one.
  const again = mine.filter((index) => index.exists.settled && !index.exists.latest && isAbsent(index));
  const name = random.chance(0.6) ? random.pick(again)?.name : undefined;
  client.created += 1;
  const dynamic = random.chance(0.75);
  const index = new IndexModel(name ?? `v${client.number}-${world.round}-${client.created}`, {
    owner: client.number,
    ordinal: client.number + client.created,
    volatile: true,
    dynamic,
    exists: false,
  });
  if (name !== undefined) index.log = model.indices.get(name).log;
  model.add(index);
  index.exists.begin(true);
  await disturbing(index, () =>
    world.perform(client, {
      method: 'PUT',
      path: `/${index.name}`,
      body: {
        settings: { number_of_replicas: 0, refresh_interval: '100ms' },
        mappings: { ...(dynamic ? {} : { dynamic: false }), properties: PROPERTIES },
      },
      registers: [index.exists],
      indices: [index],
    }),
  );
  return true;
}

/** Waits until no other client works on an index; false where the server ends before. */
async function leaveAlone(client, index) {
  index.leaving = true;
  try {
    while (index.users.size > 0 || index.lockedBy.size > 0) {
      if (client.world.stopping) return false;
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    return true;
  } finally {
    index.leaving = false;
  }
}

async function deleteIndex(client) {
  const index = client.random.pick(ownVolatile(client));
  if (index === undefined) return false;
  if (client.world.off.has('deletionRaces') && !(await leaveAlone(client, index))) return true;
  index.exists.begin(false);
  await disturbing(index, () =>
    client.world.perform(client, {
      method: 'DELETE',
      path: `/${index.name}`,
      registers: [index.exists],
      indices: [index],
    }),
  );
  return true;
}

/** Sets or lifts the write block; an index that is blocked is soon freed again. */
async function toggleBlock(client) {
  const candidates = own(client).filter(({ blocked, open }) => blocked.settled && open.settled && open.latest);
  const blocked = candidates.filter(({ blocked }) => blocked.latest === 'true');
  const index = client.random.pick(blocked.length > 0 ? blocked : candidates);
  if (index === undefined) return false;
  return setBlock(client, index, index.blocked.latest === 'true' ? 'false' : 'true');
}

async function setBlock(client, index, value) {
  index.blocked.begin(value);
  return disturbing(index, () =>
    client.world.perform(client, {
      method: 'PUT',
      path: `/${index.name}/_settings`,
      body: { index: { 'blocks.write': value === 'true' ? true : client.random.chance(0.5) ? null : false } },
      registers: [index.blocked],
      indices: [index],
    }),
  );
}

async function toggleOpen(client) {
  const candidates = own(client).filter(({ open, shape }) => open.settled && shape === 'current');
  const closed = candidates.filter(({ open }) => !open.latest);
  const index = client.random.pick(closed.length > 0 ? closed : candidates);
  if (index === undefined) return false;
  const wanted = !index.open.latest;
  index.open.begin(wanted);
  await disturbing(index, () =>
    client.world.perform(client, {
      method: 'POST',
      path: `/${index.name}/${wanted ? '_open' : '_close'}`,
      registers: [index.open],
      indices: [index],
    }),
  );
  return true;
}

async function putSetting(client) {
  const candidates = client.model.live.flatMap((index) =>
    SETTINGS.filter((_, n) => (index.ordinal + n + 1) % client.clients === client.number)
      .filter(([key]) => index.settings.get(key).settled)
      .map(([key, values]) => ({ index, key, values })),
  );
  const chosen = client.random.pick(candidates);
  if (chosen === undefined) return false;
  const { index, key, values } = chosen;
  const register = index.settings.get(key);
  const value = client.random.pick(values);
  register.begin(value);
  await client.world.perform(client, {
    method: 'PUT',
    path: `/${index.name}/_settings`,
    body: { index: { [key]: value } },
    registers: [register],
    indices: [index],
  });
  return true;
}

async function putMapping(client) {
  const index = client.random.pick(client.model.live);
  if (index === undefined) return false;
  const type = client.random.pick(['keyword', 'integer', 'double', 'date']);
  // Numbers of a client's own, so that several add different fields at once.
  const name = `m_${type}_${client.number * 100 + client.random.below(20)}`;
  await client.world.perform(client, {
    method: 'PUT',
    path: `/${index.name}/_mapping`,
    body: { properties: { [name]: { type } } },
    indices: [index],
    settle: () => index.fields.set(name, type),
  });
  return true;
}

/** Maps a field as a number that documents of the log hold as a word: they were written while it was not mapped. */
async function narrowMapping(client) {
  const index = client.random.pick(ownVolatile(client).filter(({ dynamic, available }) => !dynamic && available));
  if (index === undefined) return false;
  const name = `u_integer_${client.random.below(5)}`;
  // From here on the client writes it no more, whatever becomes of this request.
  (index.narrowed ??= new Set()).add(name);
  await client.world.perform(client, {
    method: 'PUT',
    path: `/${index.name}/_mapping`,
    body: { properties: { [name]: { type: 'integer' } } },
    indices: [index],
    settle: () => index.fields.set(name, 'integer'),
  });
  return true;
}

/** Copies an index behind a write block. */
async function clone(client) {
  const { model, world } = client;
  const copies = [...model.indices.values()].filter(
    (index) => index.volatile && index.owner === client.number && (!index.exists.settled || index.exists.latest),
  );
  const sources = ownVolatile(client).filter(
    ({ available, dynamic, lockedBy }) => available && dynamic && lockedBy.size === 0,
  );
  const source = client.random.pick(sources);
  if (source === undefined || copies.length > VOLATILE_PER_CLIENT) return false;
  if (!(await setBlock(client, source, 'true'))) return true;
  // Writes that were sent before the block was acknowledged may still be under way.
  const earlier = [...source.users];
  while (earlier.some((operation) => source.users.has(operation)) || source.lockedBy.size > 0) {
    if (world.stopping) return true;
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  client.created += 1;
  const target = new IndexModel(`copy${client.number}-${world.round}-${client.created}`, {
    owner: client.number,
    ordinal: client.number + client.created,
    shape: source.shape,
    volatile: true,
    exists: false,
  });
  for (const [id, register] of source.docs) {
    const copied = new Register(register.candidates[0]);
    for (const state of register.candidates.slice(1)) {
      copied.begin(state);
      copied.doubt();
    }
    target.docs.set(id, copied);
    if (register.settled && register.latest?.seqNo !== undefined) target.seqNos.set(register.latest.seqNo, id);
  }
  for (const [name, type] of source.fields) target.fields.set(name, type);
  for (const key of ['refresh_interval', 'max_result_window']) {
    const setting = source.settings.get(key);
    target.settings.set(key, new Register(setting.settled ? setting.latest : undefined));
  }
  model.add(target);
  // Its block is lifted below, whether it has been copied or not.
  target.blocked.begin('true');
  target.blocked.doubt();
  target.exists.begin(true);
  const done = await disturbing(target, () =>
    world.perform(client, {
      method: 'POST',
      path: `/${source.name}/_clone/${target.name}`,
      registers: [target.exists],
      indices: [target, source],
    }),
  );
  if (done) await setBlock(client, target, 'false');
  return true;
}

/** What changes no document and no setting. */
function maintenance(path) {
  return async (client) => {
    const index = client.random.pick(client.model.live);
    if (index === undefined) return false;
    await client.world.perform(client, { method: 'POST', path: `/${index.name}/${path}`, indices: [index] });
    return true;
  };
}

/** Rewrites an index of the old format; one of the current format has nothing to do. */
async function upgrade(client) {
  const old = client.model.live.filter(({ shape, owner }) => shape === 'old' && owner === client.number);
  const index = client.random.pick(old) ?? (client.random.chance(0.05) ? client.random.pick(own(client)) : undefined);
  if (index === undefined || index.upgraded) return false;
  await client.world.perform(client, {
    method: 'POST',
    path: `/_ext/migration/upgrade/${index.name}`,
    indices: [index],
    settle: () => {
      index.upgraded = true;
    },
    refusal: ({ body }) => errorType(body) === 'index_closed_exception' && !index.available,
  });
  return true;
}

/** `[weight, name, operation]` */
export const INDEX_OPERATIONS = [
  [3, 'createIndex', createIndex],
  [1.5, 'deleteIndex', deleteIndex],
  [1.5, 'toggleBlock', toggleBlock],
  [1, 'toggleOpen', toggleOpen],
  [2, 'putSetting', putSetting],
  [2, 'putMapping', putMapping],
  [2, 'narrowMapping', narrowMapping],
  [1, 'clone', clone],
  [1.5, 'forcemerge', maintenance('_forcemerge?max_num_segments=1')],
  [2, 'flush', maintenance('_flush')],
  [2, 'refresh', maintenance('_refresh')],
  [2, 'upgrade', upgrade],
];

/** What a client does first when it has an index that takes no writes. */
export const RELEASES = { toggleBlock, toggleOpen };

/** Whether a client has an index that takes no writes, and which operation ends that. */
export function releaseFor(client) {
  const indices = own(client).filter(({ open, blocked }) => open.settled && blocked.settled);
  if (indices.some(({ open }) => !open.latest)) return toggleOpen;
  return indices.some(({ blocked }) => blocked.latest === 'true') ? toggleBlock : undefined;
}
