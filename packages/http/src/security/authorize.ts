import { type Endpoint, HttpError } from '@sparrow-search/endpoints';
import { type Action, type EngineRequest, ACTIONS } from '@sparrow-search/engine';

import { INDEX_ACTIONS, grants } from './actions.js';
import type { ApiKey } from './key-store.js';
import type { Roles } from './roles.js';

type Texts = Readonly<Record<string, string>>;

/** What follows from the roles of a key. */
interface Known {
  readonly everyIndex: boolean;
  /** Its rights as the engine reads them. */
  readonly rights: string;
  /** Actions that were found to be admitted. */
  readonly admitted: Set<Action>;
}

/** What is worked out once for each key, which is replaced, never changed. */
const known = new WeakMap<ApiKey, Known>();

/**
 * Checks what can be told before the body is read: that the key holds the privilege for an endpoint of the cluster, or for
 * one of indices on any index at all. Which indices these are is checked by the engine, where it parses their names.
 *
 * @param path the parameters in the path
 * @param query those behind it
 * @throws {HttpError} 403 with the documented sentence
 */
export function admit(key: ApiKey, endpoint: Endpoint, path: Texts, query: Texts): void {
  const { action } = endpoint;
  if (action === null || action === 'public') return;
  const { admitted } = knownOf(key);
  if (admitted.has(action)) return;
  if (ACTIONS[action].scope === 'cluster') {
    if (!holdsOnCluster(key, (held) => grants(held, action))) throw forbidden(key, action, action, '');
  } else if (patterns(key, action).some((list) => list.length === 0)) {
    const asked = path['index'] ?? path['name'] ?? '*';
    const needed = replaces(endpoint, path, query) ? 'indices:data/write/index:op_type/index' : action;
    throw forbidden(key, action, needed, ACTIONS[action].composite ? '' : ` on indices [${asked}]`);
  }
  admitted.add(action);
}

/** Whether a request writes a document that may be there already, which takes more than adding one. */
function replaces({ handler }: Endpoint, path: Texts, query: Texts): boolean {
  const isIndexing = 'engine' in handler && handler.engine === 'index_doc';
  return isIndexing && path['id'] !== undefined && query['op_type']?.toLowerCase() !== 'create';
}

/** What a request of this key brings along for the engine to check names by; nothing for a key that may do everything there. */
export function rightsFor(key: ApiKey, { action }: Pick<Endpoint, 'action'>): Pick<EngineRequest, 'action' | 'rights'> {
  const { everyIndex, rights } = knownOf(key);
  const showsMore =
    action !== null &&
    ((HOLDS_KEYS.has(action) && !holdsOnCluster(key, holdsCluster)) ||
      (SHOWS_PIPELINES.has(action) && !holdsOnCluster(key, readsPipelines)));
  if (everyIndex && !showsMore) return NOTHING;
  if (action !== null && WRITES_TEMPLATES.has(action) && holdsOnCluster(key, managesCluster)) return NOTHING;
  const ofIndices = action !== null && action !== 'public' && ACTIONS[action].scope === 'index';
  return ofIndices ? { action, rights } : { rights };
}

const NOTHING = {};

/** What gives indices their aliases: who manages the whole cluster may name any. */
const WRITES_TEMPLATES: ReadonlySet<string> = new Set<Action>([
  'indices:admin/index_template/put',
  'indices:admin/template/put',
  'cluster:admin/component_template/put',
]);

/** What can copy API keys and bring them back, which only a key may that may do everything on the cluster as well. */
const HOLDS_KEYS: ReadonlySet<string> = new Set<Action>([
  'cluster:admin/snapshot/create',
  'cluster:admin/snapshot/restore',
]);

/** What names the pipelines that use what is to go. */
const SHOWS_PIPELINES: ReadonlySet<string> = new Set<Action>([
  'cluster:admin/xpack/inference/delete',
  'cluster:admin/xpack/ml/trained_models/deployment/stop',
]);

function readsPipelines(held: readonly string[]): boolean {
  return grants(held, 'cluster:admin/ingest/pipeline/get');
}

function holdsCluster(held: readonly string[]): boolean {
  return held.includes('all');
}

function managesCluster(held: readonly string[]): boolean {
  return held.includes('manage') || held.includes('all');
}

function knownOf(key: ApiKey): Known {
  let found = known.get(key);
  if (found === undefined) {
    found = { everyIndex: holdsEveryIndex(key), rights: write(key), admitted: new Set() };
    known.set(key, found);
  }
  return found;
}

/** Each list of patterns stands there once: a role with many names grants dozens of actions on them. */
function write(key: ApiKey): string {
  const lists: (readonly string[])[] = [];
  const places = new Map<string, number>();
  const place = (list: readonly string[]): number => {
    const text = JSON.stringify(list);
    let at = places.get(text);
    if (at === undefined) places.set(text, (at = lists.push(list) - 1));
    return at;
  };
  const granted = INDEX_ACTIONS.map((action) => {
    const grant = { names: patterns(key, action).map(place), by: ACTIONS[action].privileges.join(',') };
    return [action, grant] as const;
  });
  const pipelines = holdsOnCluster(key, readsPipelines);
  return JSON.stringify({
    key: key.id,
    root: key.root,
    user: key.username,
    lists,
    grants: Object.fromEntries(granted),
    pipelines,
  });
}

/** Whether the key has a role with suitable privileges on the cluster, and so have all that it may not go beyond. */
export function holdsOnCluster(key: ApiKey, suits: (held: readonly string[]) => boolean): boolean {
  return rolesOf(key).every((roles) => Object.values(roles).some((role) => suits(role.cluster)));
}

/** The key's roles, and those of the keys that made it: all of them have to allow something. */
function rolesOf(key: ApiKey): readonly Roles[] {
  return [key.roles, ...(key.limitedBy ?? [])];
}

/** The index patterns on which the key may carry out an action: a name has to match one of each list. */
function patterns(key: ApiKey, action: Action): readonly (readonly string[])[] {
  return rolesOf(key).map((roles) =>
    Object.values(roles).flatMap((role) =>
      role.indices.filter(({ privileges }) => grants(privileges, action)).flatMap(({ names }) => names),
    ),
  );
}

/** Whether everything is granted on every index: then no name has to be looked at. */
function holdsEveryIndex(key: ApiKey): boolean {
  return rolesOf(key).every((roles) =>
    Object.values(roles).some((role) =>
      role.indices.some(({ names, privileges }) => names.includes('*') && privileges.includes('all')),
    ),
  );
}

/** The documented sentence of a 403; the privileges are those for `needed`, `on` names the indices. */
function forbidden(key: ApiKey, action: Action, needed: Action, on: string): HttpError {
  const { scope, privileges } = ACTIONS[needed];
  return new HttpError(
    'forbidden',
    `action [${action}] is unauthorized for API key id [${key.id}] of user [${key.username}]${on}, ` +
      `this action is granted by the ${scope} privileges [${privileges.join(',')}]`,
  );
}
