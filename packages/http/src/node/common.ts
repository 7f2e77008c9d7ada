import { HttpError } from '@sparrow-search/endpoints';
import { matchesGlob } from '@sparrow-search/engine';

import { type Identity, NODE_NAME } from '../identity.js';
import type { Instruments } from '../instruments/instruments.js';

/** What `_nodes` asks of, besides the process itself. */
export interface NodeContext {
  readonly identity: Identity;
  /** Where the data is. */
  readonly data: string;
  /** `host:port` that the server listens on. */
  readonly address: string;
  readonly maxBodyBytes: number;
  readonly instruments: Instruments;
  /** Asks the engine for a part of the answer. */
  readonly ask: (
    op: 'node_indices' | 'cluster_figures' | 'cluster_health' | 'instruments',
    path: Readonly<Record<string, string>>,
    query: Readonly<Record<string, string>>,
  ) => Promise<Readonly<Record<string, unknown>>>;
}

export const ROLES = ['data', 'ingest', 'master', 'ml', 'remote_cluster_client'];
export const NAME = NODE_NAME;
export const HOST = '127.0.0.1';
export const TRANSPORT = `${HOST}:9300`;

const NO_PRESSURE = {
  combined_coordinating_and_primary_in_bytes: 0,
  coordinating_in_bytes: 0,
  primary_in_bytes: 0,
  replica_in_bytes: 0,
  all_in_bytes: 0,
};
export const PRESSURE = {
  current: NO_PRESSURE,
  total: {
    ...NO_PRESSURE,
    coordinating_rejections: 0,
    primary_rejections: 0,
    replica_rejections: 0,
    primary_document_rejections: 0,
  },
  limit_in_bytes: 0,
};

export function head(): object {
  return { name: NAME, transport_address: TRANSPORT, host: HOST, ip: HOST };
}

export function answer(context: NodeContext, nodes: Readonly<Record<string, object>>): object {
  const count = Object.keys(nodes).length;
  return {
    _nodes: { total: count, successful: count, failed: 0 },
    cluster_name: context.identity.clusterName,
    nodes,
  };
}

/** Whether a list of nodes in a path has this one in it. */
export function isHere(list: string | undefined, node: string): boolean {
  if (list === undefined || list === '') return true;
  const names = ['_all', '_local', '_master', '*', HOST, NAME, node, ...ROLES.map((role) => `${role}:true`)];
  const matches = (pattern: string): boolean =>
    names.includes(pattern) || (pattern.includes('*') && matchesGlob(pattern, NAME));
  return list.split(',').some((name) => matches(name.trim()));
}

/** The metrics that a path asks for; all if it asks for none. */
export function metrics(list: string, known: readonly string[], path: string): readonly string[] {
  const asked = list.split(',').map((name) => name.trim());
  if (list === '' || list === '_all' || list === '_none') return list === '_none' ? [] : known;
  if (asked.includes('_all')) {
    throw new HttpError(
      'illegal_argument',
      `request [${path}/${list}] contains _all and individual metrics [${asked.join(',')}]`,
    );
  }
  const unknown = asked.filter((name) => !known.includes(name));
  if (unknown.length > 0) {
    const words = unknown.map((name) => {
      const near = known.filter((one) => similar(name, one));
      if (near.length === 0) return `[${name}]`;
      return near.length === 1
        ? `[${name}] -> did you mean [${near.join()}]?`
        : `[${name}] -> did you mean any of [${near.join(', ')}]?`;
    });
    throw new HttpError(
      'illegal_argument',
      `request [${path}/${list}] contains unrecognized metric${unknown.length > 1 ? 's' : ''}: ${words.join(', ')}`,
    );
  }
  return known.filter((name) => asked.includes(name));
}

/** Whether at most half of the letters have to change. */
function similar(a: string, b: string): boolean {
  if (a.length > 100) return false;
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 0; i < a.length; i += 1) {
    const next = [i + 1];
    for (let j = 0; j < b.length; j += 1) {
      const replaced = (row[j] ?? 0) + (a[i] === b[j] ? 0 : 1);
      next.push(Math.min(replaced, (row[j + 1] ?? 0) + 1, (next[j] ?? 0) + 1));
    }
    row = next;
  }
  return 1 - (row[b.length] ?? 0) / Math.max(a.length, b.length, 1) > 0.5;
}

export async function collect(
  chosen: readonly string[],
  sections: Readonly<Record<string, () => object | Promise<object>>>,
): Promise<Record<string, object>> {
  const made: Record<string, object> = {};
  for (const name of chosen) {
    const section = sections[name];
    if (section !== undefined) made[name] = await section();
  }
  return made;
}

export function pick(from: Readonly<Record<string, unknown>>, names: readonly string[]): object {
  return Object.fromEntries(names.filter((name) => name in from).map((name) => [name, from[name]]));
}

export function percents(used: number, total: number): object {
  const percent = Math.round((used * 100) / total);
  return { free_percent: 100 - percent, used_percent: percent };
}
