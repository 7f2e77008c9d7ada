import { type Action, ACTIONS } from '@sparrow-search/engine';

/** The actions that the engine checks on names; it knows every one of them. */
export const INDEX_ACTIONS: readonly Action[] = (Object.keys(ACTIONS) as Action[]).filter(
  (action) => ACTIONS[action].scope === 'index',
);

/** What a broader privilege brings along besides what names it directly. */
const IMPLIED: Readonly<Record<string, readonly string[]>> = {
  write: ['create_doc', 'create', 'index', 'delete'],
  index: ['create_doc', 'create'],
  create: ['create_doc'],
  manage_security: ['manage_api_key'],
};

/** All index privileges a role may name. */
export const INDEX_PRIVILEGES: ReadonlySet<string> = privilegesOf('index', ['none', 'maintenance']);

/** All cluster privileges a role may name. */
export const CLUSTER_PRIVILEGES: ReadonlySet<string> = privilegesOf('cluster', ['none']);

/** Whether a role holding `held` may carry out `action`. */
export function grants(held: readonly string[], action: Action): boolean {
  const wanted = ACTIONS[action].privileges;
  return held.some(
    (privilege) => wanted.includes(privilege) || (IMPLIED[privilege] ?? []).some((implied) => wanted.includes(implied)),
  );
}

function privilegesOf(scope: 'cluster' | 'index', more: readonly string[]): ReadonlySet<string> {
  const named = Object.values(ACTIONS).filter((action) => action.scope === scope);
  return new Set([...more, ...named.flatMap((action) => action.privileges)]);
}
