import { HttpError } from '../errors.js';
import { matchesGlob } from '../glob.js';
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
 * Checks access to indices and aliases by the names that a request gives. An alias is a name of its own: who may use it
 * reaches its indices through it, and who may use its indices may not use it for that.
 *
 * Wildcards stand for what the key may see if the engine narrows them (`narrowed`): then it is enough that it may see
 * anything. Elsewhere an expression is allowed where one pattern of the key covers all that it can match.
 *
 * @throws {HttpError} 403 naming the indices that are not allowed
 */
export function requireIndices(key: ApiKey, { action, indices }: Access, narrowed: boolean): void {
  if (isUnrestricted(key, action)) return;
  const own = patterns(key, action);
  const asked = indices.length === 0 ? ['*'] : indices.map((name) => name.trim());
  const denied = asked.filter((name) => {
    if (name.startsWith('-')) return false;
    const wild = ALL.has(name) || (name.includes('*') && !name.startsWith('<'));
    if (wild && narrowed) return own.length === 0;
    return ALL.has(name) || !own.some((pattern) => covers(pattern, possibleNames(name)));
  });
  if (denied.length > 0) throw forbidden(key, action, ` on indices [${denied.join(',')}]`);
}

/** An expression for the names that date math may come to: `<logs-{now/d}>` is one of `logs-*`. */
function possibleNames(name: string): string {
  if (!name.startsWith('<')) return name;
  return name.includes('\\')
    ? '*'
    : name
        .slice(1)
        .replace(/>$/, '')
        .replaceAll(/\{.*\}/g, '*');
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
 * Whether a pattern of a role covers a name, or an expression with wildcards: the pattern's `*` also matches a literal `*`,
 * so `logs-*` covers the expression `logs-2*`.
 */
function covers(pattern: string, name: string): boolean {
  return matchesGlob(pattern, name, '?');
}
