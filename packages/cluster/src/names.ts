import { EngineError, type EngineRequest, type SearchEngine } from '@sparrow-search/engine';

import { illegal, notOverCluster, refusal } from './errors.js';
import { isObject } from './json.js';
import type { Transport } from './transport.js';

/** What the names of Sparrow's own indices begin with. */
export const RESERVED = '.sparrow-';

/** What no pattern stands for: Sparrow's own indices, and the one in which a cluster keeps what its tasks answered. */
const NO_PATTERN = [`-${RESERVED}*`, '-.tasks*'];

/** Most names that a pattern of a restricted key stands for: they go into an address. */
const MOST_NAMES = 200;

/** Who asks, of a request. */
export interface Asker extends Pick<EngineRequest, 'action' | 'rights' | 'named' | 'query'> {
  /** Told each time that the caller may not use what the request, or a part of it, names. */
  readonly refused?: (() => void) | undefined;
}

/**
 * Which indices a request may name. What a restricted key may do is decided where the native engine decides it: it is asked
 * for each name, with nothing but the name, the action and the key's rights.
 */
export class Names {
  readonly #native: SearchEngine;
  readonly #transport: Transport;

  constructor(native: SearchEngine, transport: Transport) {
    this.#native = native;
    this.#transport = transport;
  }

  /**
   * Checks names that stand for one index or alias each.
   *
   * @param action what is to be done to them; what the request was let in for without one
   * @throws {EngineError} 403 for those that the caller may not use, 400 for Sparrow's own
   */
  async check(asker: Asker, names: readonly string[], action = asker.action): Promise<void> {
    if (names.length === 0) return;
    names.forEach(refuseReserved);
    asker.named?.(names);
    if (asker.rights === undefined) return;
    names.forEach(refuseUnclear);
    await this.#allow(asker, asker.rights, action, names.join(','));
  }

  /**
   * The expression that the cluster gets for one of a request: without Sparrow's own indices, and for a restricted key with
   * what its patterns stand for, as far as it may use that.
   *
   * @param given names and patterns, separated by commas; nothing for all
   * @returns undefined when a restricted key's patterns stand for nothing
   * @throws {EngineError} 403, 400
   */
  async expression(asker: Asker, given: string | undefined): Promise<string | undefined> {
    const parts = (given ?? '')
      .split(',')
      .map((part) => part.trim())
      .filter((part) => part !== '');
    if (parts.length === 0) parts.push('*');
    const concrete = parts.filter((part) => !isPattern(part) && !part.startsWith('-'));
    await this.check(asker, concrete);
    const patterns = parts.filter((part) => isPattern(part) && !part.startsWith('-'));
    if (patterns.length === 0) return parts.join(',');
    asker.named?.(patterns);
    if (asker.rights === undefined) return [...parts.map(withoutAll), ...NO_PATTERN].join(',');
    await this.#allow(asker, asker.rights, asker.action, patterns.map(withoutAll).join(','));
    const excluded = parts.filter((part) => part.startsWith('-'));
    const found = await this.#resolve([...patterns.map(withoutAll), ...excluded], asker.query['expand_wildcards']);
    const { rights } = asker;
    const allowed = await Promise.all(
      found.map(async (name) => ((await this.#mayUse(rights, asker.action, name)) ? [name] : [])),
    );
    const names = [...concrete, ...allowed.flat()];
    if (names.length > MOST_NAMES) {
      throw illegal(
        `[${patterns.join(',')}] stands for [${String(names.length)}] names, at most [${String(MOST_NAMES)}] can be ` +
          'asked for by a key that may use some indices only: use a narrower pattern, or an alias',
      );
    }
    return names.length === 0 ? undefined : names.join(',');
  }

  async #resolve(parts: readonly string[], expand: string | undefined): Promise<readonly string[]> {
    const { status, body } = await this.#transport.json({
      method: 'GET',
      path: `/_resolve/index/${encodeExpression(parts.join(','))}`,
      query: { expand_wildcards: expand ?? 'open' },
    });
    if (status !== 200 || !isObject(body)) return [];
    return ['indices', 'aliases', 'data_streams']
      .flatMap((kind) => (Array.isArray(body[kind]) ? (body[kind] as unknown[]) : []))
      .map((one) => (isObject(one) ? String(one['name']) : ''))
      .filter((name) => name !== '' && !name.startsWith(RESERVED));
  }

  /** Those of some names that the caller may use. */
  async usable({ rights, action }: Asker, names: readonly string[]): Promise<readonly string[]> {
    if (rights === undefined) return names;
    const may = await Promise.all(names.map((name) => this.#mayUse(rights, action, name)));
    return names.filter((_, at) => may[at]);
  }

  async #mayUse(rights: string, action: string | undefined, name: string): Promise<boolean> {
    try {
      await this.#decide(rights, action, name);
      return true;
    } catch {
      return false;
    }
  }

  async #allow({ refused }: Asker, rights: string, action: string | undefined, index: string): Promise<void> {
    try {
      await this.#decide(rights, action, index);
    } catch (error) {
      if (error instanceof EngineError && error.status === 403) refused?.();
      throw error;
    }
  }

  /** The native engine, which has no index, counts documents of an expression: it refuses what the caller may not use. */
  async #decide(rights: string, action: string | undefined, index: string): Promise<void> {
    await this.#native.execute({
      op: 'count',
      path: { index },
      query: { ignore_unavailable: 'true', expand_wildcards: 'all' },
      action,
      rights,
    });
  }
}

/** Whether a part of an expression stands for what matches it. */
export function isPattern(part: string): boolean {
  return part.includes('*') || part === '_all';
}

/** An expression as a part of a path. */
export function encodeExpression(expression: string): string {
  return expression.split(',').map(encodeURIComponent).join(',').replaceAll('%2A', '*');
}

function withoutAll(part: string): string {
  return part === '_all' ? '*' : part;
}

/** @throws {EngineError} 400 for names of Sparrow's own indices, also where date math has them, and for those of the interface */
function refuseReserved(name: string): void {
  // In an address of the cluster such a name would be an endpoint.
  if (name.startsWith('_')) {
    throw refusal(400, 'invalid_index_name_exception', `Invalid index name [${name}], must not start with '_'`);
  }
  if (/^-?\.sparrow-/.test(name) || mayBecomeReserved(name)) {
    throw illegal(`names that begin with [${RESERVED}] belong to Sparrow: [${name}] cannot be used`);
  }
}

/**
 * Whether date math may stand for one of Sparrow's own indices: the cluster takes letters from quotes, nothing at all from brackets, and
 * whatever a backslash stands before; a dot may come from a format as well.
 */
function mayBecomeReserved(name: string): boolean {
  if (!/^-?</.test(name)) return false;
  return /['\\[\]]/.test(name) || /^-?<\.+sparrow/.test(name.replaceAll(/\{[^{}]*(?:\{[^{}]*\})?[^{}]*\}/g, '.'));
}

/** Names that the cluster reads in its own way cannot be decided about for it. */
function refuseUnclear(name: string): void {
  if (name.trim() === '' || name.includes(',') || isPattern(name)) throw illegal(`[${name}] is not a name of an index`);
  if (name.startsWith('<')) throw notOverCluster(`date math in [${name}], for a key that may use some indices only,`);
  if (name.includes(':')) throw notOverCluster(`a remote index [${name}], for a key that may use some indices only,`);
}
