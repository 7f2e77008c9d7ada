import type { Endpoint } from '../routes/types.js';
import type { Action } from './actions.js';
import type { Access } from './authorize.js';

/**
 * What a request of a restricted key touches when its body names indices. Only such keys pay for reading the body here;
 * for all others it goes to the engine unread. A body that does not parse touches nothing: the engine refuses it.
 */
export function touchedIndices(
  endpoint: Endpoint,
  action: Action,
  path: Readonly<Record<string, string>>,
  body: Uint8Array | undefined,
): readonly Access[] {
  const inPath = split(path['index']);
  switch (endpoint.indices ?? 'path') {
    case 'path':
      return [{ action, indices: inPath }];
    case 'bulk':
      return bulk(body, inPath);
    case 'docs':
      return [{ action, indices: [...new Set([...inPath, ...docs(body)])] }];
    case 'reindex':
      return reindex(body);
    case 'by_query':
      return [
        { action: 'indices:data/read/search', indices: inPath },
        { action, indices: inPath },
      ];
    case 'alias':
      return [{ action, indices: [...inPath, ...split(path['name']), ...aliasNames(body)] }];
    case 'aliases':
      return [{ action, indices: aliasActions(body) }];
    case 'create':
      return created(action, inPath, body);
    case 'resize':
      return resized(action, inPath, split(path['target']), body);
    case 'opened':
    case 'headers':
      // Checked by the engine, which is told what the key may do.
      return [];
  }
}

function split(list: string | undefined): readonly string[] {
  return list === undefined ? [] : list.split(',');
}

/** Names that the definition of one alias may give instead of the path. */
function aliasNames(body: Uint8Array | undefined): readonly string[] {
  const { index, alias } = object(parse(text(body)));
  return [...names(index), ...names(alias)];
}

function aliasActions(body: Uint8Array | undefined): readonly string[] {
  const { actions } = object(parse(text(body)));
  if (!Array.isArray(actions)) return [];
  const definitions = actions.flatMap((action) => Object.values(object(action))).map(object);
  return definitions.flatMap(({ index, indices, alias, aliases }) => [index, indices, alias, aliases].flatMap(names));
}

/** Who gives aliases to a new index needs the right to, on the index and on the aliases. */
function created(action: Action, index: readonly string[], body: Uint8Array | undefined): readonly Access[] {
  const aliases = Object.keys(object(object(parse(text(body)))['aliases']));
  const access = { action, indices: index };
  return aliases.length === 0
    ? [access]
    : [access, { action: 'indices:admin/aliases', indices: [...index, ...aliases] }];
}

/** A new index from another: it must be allowed to be there, and so must the aliases that it gets. */
function resized(
  action: Action,
  from: readonly string[],
  target: readonly string[],
  body: Uint8Array | undefined,
): readonly Access[] {
  const made = target.length === 0 ? from : target;
  const aliases = Object.keys(object(object(parse(text(body)))['aliases']));
  return [
    { action, indices: from },
    { action: 'indices:admin/create', indices: made },
    ...(aliases.length === 0 ? [] : [{ action: 'indices:admin/aliases' as const, indices: [...made, ...aliases] }]),
  ];
}

const BULK_ACTIONS: Readonly<Record<string, Action>> = {
  index: 'indices:data/write/index',
  create: 'indices:data/write/index',
  update: 'indices:data/write/update',
  delete: 'indices:data/write/delete',
};

function bulk(body: Uint8Array | undefined, inPath: readonly string[]): readonly Access[] {
  const touched = new Map<Action, Set<string>>();
  // Every line that could be an action line counts as one, whatever stands before it: where the engine draws the line
  // between actions and documents must not decide what a key may reach.
  for (const line of text(body).split('\n')) {
    for (const [kind, meta] of Object.entries(object(parse(line)))) {
      const action = BULK_ACTIONS[kind];
      if (action === undefined) continue;
      const names = touched.get(action) ?? new Set();
      const own = object(meta)['_index'];
      (typeof own === 'string' ? [own] : inPath).forEach((name) => names.add(name));
      touched.set(action, names);
    }
  }
  return [...touched].filter(([, names]) => names.size > 0).map(([action, names]) => ({ action, indices: [...names] }));
}

function docs(body: Uint8Array | undefined): readonly string[] {
  const list = object(parse(text(body)))['docs'];
  return Array.isArray(list) ? list.flatMap((doc) => names(object(doc)['_index'])) : [];
}

function reindex(body: Uint8Array | undefined): readonly Access[] {
  const request = object(parse(text(body)));
  const accesses: Access[] = [
    { action: 'indices:data/read/search', indices: names(object(request['source'])['index']) },
    { action: 'indices:data/write/reindex', indices: names(object(request['dest'])['index']) },
  ];
  return accesses.filter(({ indices }) => indices.length > 0);
}

/** Actions whose body may hold a query. */
const QUERYING = /^indices:(data\/read\/|data\/write\/reindex|data\/write\/.*byquery|admin\/validate)/;

/** A body without these looks nothing up; names of keys may be written with escapes. */
const MAY_LOOK_UP = /"terms"|"more_like_this"|"wrapper"|\\u/;

/**
 * Indices whose documents `terms` and `more_like_this` queries look up, wherever in the body they stand, also in base64
 * in a `wrapper`. The body may have several lines of JSON.
 */
export function lookedUpIndices(action: Action, body: Uint8Array | undefined): readonly Access[] {
  if (!QUERYING.test(action)) return [];
  const found = new Set<string>();
  const json = text(body);
  if (!MAY_LOOK_UP.test(json)) return [];
  for (const line of [json, ...json.split('\n')]) walk(parse(line), found);
  return found.size === 0 ? [] : [{ action: 'indices:data/read/get', indices: [...found] }];
}

/** More levels than the engine reads of a body: what is deeper, it refuses. */
const DEEPEST = 1000;

function walk(value: unknown, found: Set<string>, depth = 0): void {
  if (depth > DEEPEST) return;
  if (Array.isArray(value)) {
    value.forEach((item) => {
      walk(item, found, depth + 1);
    });
    return;
  }
  for (const [key, inner] of Object.entries(object(value))) {
    if (key === 'terms') {
      for (const lookup of Object.values(object(inner))) {
        const index = object(lookup)['index'];
        if (typeof index === 'string' || typeof index === 'number') found.add(String(index));
      }
    }
    if (key === 'more_like_this') {
      for (const example of [object(inner)['like'], object(inner)['unlike']].flat()) {
        const index = object(example)['_index'];
        if (typeof index === 'string' || typeof index === 'number') found.add(String(index));
      }
    }
    const wrapped = key === 'wrapper' ? object(inner)['query'] : undefined;
    if (typeof wrapped === 'string') walk(parse(Buffer.from(wrapped, 'base64').toString()), found, depth + 1);
    walk(inner, found, depth + 1);
  }
}

function names(value: unknown): readonly string[] {
  const list: unknown[] = Array.isArray(value) ? value : [value];
  return list.filter((item) => typeof item === 'string').flatMap((item) => item.split(','));
}

function text(body: Uint8Array | undefined): string {
  return body === undefined ? '' : new TextDecoder().decode(body);
}

function parse(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    return undefined;
  }
}

function object(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
}
