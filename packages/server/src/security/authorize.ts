import { HttpError } from '../errors.js';
import { ACTIONS, type Action, grants } from './actions.js';
import type { ApiKey } from './key-store.js';

/** One thing that a request does to some indices; no names means all of them. */
export interface Access {
  readonly action: Action;
  readonly indices: readonly string[];
}

/** Names that stand for every index. */
const ALL = new Set(['_all', '*']);

/** What {@link isUnrestricted} found, by key. A key is replaced, never changed. */
const found = new WeakMap<ApiKey, Map<Action, boolean>>();

/** Whether the key may carry out `action` on every index there is, so that no name has to be looked at. */
export function isUnrestricted(key: ApiKey, action: Action): boolean {
  let ofKey = found.get(key);
  if (ofKey === undefined) found.set(key, (ofKey = new Map<Action, boolean>()));
  let unrestricted = ofKey.get(action);
  if (unrestricted === undefined) ofKey.set(action, (unrestricted = patterns(key, action).includes('*')));
  return unrestricted;
}

/** The index patterns on which the key may carry out an action. */
export function patterns(key: ApiKey, action: Action): readonly string[] {
  return Object.values(key.roles).flatMap((role) =>
    role.indices.filter(({ privileges }) => grants(privileges, action)).flatMap(({ names }) => names),
  );
}

/** @throws {HttpError} 403 with the documented sentence, unless a role of the key grants the cluster action. */
export function requireCluster(key: ApiKey, action: Action): void {
  if (Object.values(key.roles).some((role) => grants(role.cluster, action))) return;
  throw forbidden(key, action, '');
}

/**
 * Checks access to indices by name. An expression with wildcards is allowed where one pattern of the key covers all that
 * it can match.
 *
 * @throws {HttpError} 403 naming the indices that are not allowed
 */
export function requireIndices(key: ApiKey, { action, indices }: Access): void {
  if (isUnrestricted(key, action)) return;
  const allowed = patterns(key, action).map(toRegExp);
  const asked = indices.length === 0 ? ['*'] : indices;
  const denied = asked.filter(
    (name) => !name.startsWith('-') && (ALL.has(name) || !allowed.some((pattern) => pattern.test(name))),
  );
  if (denied.length > 0) throw forbidden(key, action, ` on indices [${denied.join(',')}]`);
}

/** Whether the expression asks for all indices. */
export function asksForAll(indices: readonly string[]): boolean {
  return indices.length === 0 || indices.some((name) => ALL.has(name));
}

/** The documented sentence of a 403; `on` names the indices. */
export function denial(key: ApiKey, action: Action, on: string): string {
  const { scope, privileges } = ACTIONS[action];
  return (
    `action [${action}] is unauthorized for API key id [${key.id}] of user [${key.username}]${on}, ` +
    `this action is granted by the ${scope} privileges [${privileges.join(',')}]`
  );
}

function forbidden(key: ApiKey, action: Action, on: string): HttpError {
  return new HttpError('forbidden', denial(key, action, on));
}

/**
 * A pattern of a role as a regular expression over names and over expressions with wildcards: the pattern's `*` also
 * matches a literal `*`, so `logs-*` covers the expression `logs-2*`.
 */
function toRegExp(pattern: string): RegExp {
  const source = pattern
    .replaceAll(/[.+^${}()|[\]\\]/g, '\\$&')
    .replaceAll('*', '.*')
    .replaceAll('?', '[^*]');
  return new RegExp(`^${source}$`, 's');
}
