// Aliases, pipelines and templates.
import { Register } from './register.mjs';

/** Moves the client's alias to another of the indices that stay, by one request. */
async function swapAlias(client) {
  const alias = `alias-${client.number}`;
  const register = client.model.aliases.get(alias);
  if (!register?.settled) return false;
  const from = register.latest;
  const to = client.random.pick(client.model.live.filter(({ volatile, name }) => !volatile && name !== from));
  if (to === undefined) return false;
  register.begin(to.name);
  await client.world.perform(client, {
    method: 'POST',
    path: '/_aliases',
    body: { actions: [{ remove: { index: from, alias } }, { add: { index: to.name, alias } }] },
    registers: [register],
    indices: [client.model.indices.get(from), to],
  });
  return true;
}

const registerOf = (registers, name) => {
  if (!registers.has(name)) registers.set(name, new Register(null));
  return registers.get(name);
};

async function putPipeline(client) {
  const name = `p-${client.number}`;
  const register = registerOf(client.model.pipelines, name);
  if (!register.settled) return false;
  const remove = register.latest !== null && client.random.chance(0.3);
  const mark = `m${client.random.below(1000)}`;
  register.begin(remove ? null : mark);
  await client.world.perform(client, {
    method: remove ? 'DELETE' : 'PUT',
    path: `/_ingest/pipeline/${name}`,
    body: remove ? undefined : { description: mark, processors: [{ set: { field: 'mark', value: mark } }] },
    registers: [register],
  });
  return true;
}

async function putTemplate(client) {
  const name = `t-${client.number}`;
  const register = registerOf(client.model.templates, name);
  if (!register.settled) return false;
  const remove = register.latest !== null && client.random.chance(0.3);
  const interval = `${1 + client.random.below(50)}s`;
  register.begin(remove ? null : interval);
  await client.world.perform(client, {
    method: remove ? 'DELETE' : 'PUT',
    path: `/_index_template/${name}`,
    body: remove
      ? undefined
      : { index_patterns: [`of-template-${client.number}-*`], template: { settings: { refresh_interval: interval } } },
    registers: [register],
  });
  return true;
}

/** `[weight, name, operation]` */
export const CLUSTER_OPERATIONS = [
  [2, 'swapAlias', swapAlias],
  [1, 'putPipeline', putPipeline],
  [1, 'putTemplate', putTemplate],
];
