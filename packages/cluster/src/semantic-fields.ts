import { EngineError, type EngineReply, type SearchEngine } from '@sparrow-search/engine';

import { derived } from './believed.js';
import { checkedTemplates } from './dynamic-templates.js';
import { type Json, isObject } from './json.js';
import { notOverCluster, refusal } from './errors.js';
import { type KnownIndices, type Mappings, ONLY_OWN, type Written } from './known-indices.js';
import { META, fromCluster, ownMeta, writtenDown } from './mappings.js';
import {
  COMPANION,
  type Slot,
  companionMapping,
  isSemantic,
  reducedMapping,
  semanticIn,
  slotsOf,
  withDefinitions,
} from './passage-mappings.js';
import type { Product } from './product.js';
import { passedOn } from './replies.js';
import type { Transport } from './transport.js';
import type { Turns } from './turns.js';

/** An index with `semantic_text` fields, as the native engine is told of it. */
export interface SemanticIndex {
  readonly index: string;
  /** What of its mapping says how passages are made, and what of its state a mapping does not show. */
  readonly mapping: Json;
  readonly state: unknown;
  /** The definitions of its `semantic_text` fields, by their paths. */
  readonly fields: Readonly<Record<string, Json>>;
}

/** What is known of the indices that a search reads, of which some have `semantic_text` fields. */
export interface SemanticIndices {
  readonly indices: readonly SemanticIndex[];
  /** One of each of those that are mapped alike, as the indices of a pattern often are. */
  readonly distinct: readonly SemanticIndex[];
  /** Paths that are a field of another type in some index. */
  readonly others: ReadonlySet<string>;
}

/** What the native engine makes of an index with `semantic_text` fields. */
export interface Wider {
  readonly mapping: Json;
  readonly state: unknown;
  /** The change of a model that is under way; null where one is over. */
  readonly change?: Json | null;
}

/** How long the servers believe what they know of mappings, and a little more. */
const UNTIL_KNOWN_MS = 5_500;

/** Which fields of indices are of type `semantic_text`. */
export class SemanticFields {
  readonly native: SearchEngine;
  readonly product: Product;
  /** Lets one change at a time be made to the stored description of an index, among all servers of the cluster. */
  readonly turns: Turns;
  readonly #transport: Transport;
  readonly #indices: KnownIndices;
  readonly #always: SemanticIndices | undefined;

  /** @param always what is said of every expression, for a search in vectors that are not those which searches read */
  constructor(
    native: SearchEngine,
    transport: Transport,
    indices: KnownIndices,
    product: Product,
    turns: Turns,
    always?: SemanticIndices,
  ) {
    this.native = native;
    this.turns = turns;
    this.product = product;
    this.#transport = transport;
    this.#indices = indices;
    this.#always = always;
  }

  /** A copy for which every expression stands for one index, whose definition names the vectors that searches read. */
  as(index: SemanticIndex): SemanticFields {
    const always = { indices: [index], distinct: [index], others: new Set<string>() };
    return new SemanticFields(this.native, this.#transport, this.#indices, this.product, this.turns, always);
  }

  /** The fields of the indices that an expression stands for; undefined where none has any. */
  async of(expression: string): Promise<SemanticIndices | undefined> {
    if (this.#always !== undefined) return this.#always;
    // Most indices have none, and their mappings may be long.
    const some = await this.#indices.own(expression);
    const hasAny = some.some(([, mapping]) => Object.values(writtenDown(mapping)).some(isText));
    return hasAny ? indicesIn(await this.#indices.whole(expression)) : undefined;
  }

  /**
   * The fields of the index that a name writes to: one that is there, or one that a template makes.
   *
   * @returns undefined where it has none
   */
  async writtenTo(name: string): Promise<SemanticIndex | undefined> {
    return writtenIn(await this.#indices.written(name));
  }

  /** The same, whatever is believed. */
  async writtenToNow(name: string): Promise<SemanticIndex | undefined> {
    return writtenIn(await this.#indices.writtenNow(name));
  }

  /**
   * Writes down what the first vectors of fields have settled about them, before any document has them, or what a change of a model has.
   * Only a caller that has the turn of the index does so.
   *
   * @param wider what the native engine made of the mapping and the state of the index, and of the change of a model if that is concerned
   * @throws {EngineError} 404 for an index whose model is changed and that is gone
   */
  async settle({ index }: Pick<SemanticIndex, 'index'>, wider: Wider): Promise<void> {
    const name = encodeURIComponent(index);
    // A template has its mapping once the index is there.
    const [before] = await this.#indices.read(index);
    if (before === undefined && 'change' in wider) throw indexMissing(index);
    if (before === undefined) await this.made(index);
    const [now] = before === undefined ? await this.#indices.read(index) : [before];
    const mapping = isObject(now?.[1]) ? now[1] : {};
    const fields = { ...writtenDown(mapping), ...semanticIn(wider.mapping) };
    const meta = isObject(mapping['_meta']) ? mapping['_meta'] : {};
    const change = 'change' in wider ? { change: wider.change ?? undefined } : {};
    const own = { ...ownMeta(mapping), fields, semantic: wider.state, ...change };
    const companion = companionMapping(fields, this.product, wider.state);
    const body = JSON.stringify({ _meta: { ...meta, [META]: own }, properties: { [COMPANION]: companion } });
    const answered = await this.#transport.ask({ method: 'PUT', path: `/${name}/_mapping`, body, repeatable: true });
    if (answered.status !== 200) throw passedOn(answered);
    this.forget();
  }

  /** Makes what a template makes of a name that is written to. */
  async made(name: string): Promise<void> {
    const path = `/${encodeURIComponent(name)}`;
    const made = await this.#transport.ask({ method: 'PUT', path });
    // Of some templates come no indices, but data streams.
    if (made.status === 400) await this.#transport.ask({ method: 'PUT', path: `/_data_stream${path}` });
  }

  /**
   * A mapping that is put, with its `semantic_text` fields as they are shown: what the native engine refuses is refused, also in dynamic
   * templates of which the cluster never hears.
   *
   * @param current the mapping of the index in the cluster, if there is one
   * @throws {EngineError} 400
   */
  async checked(given: unknown, current?: unknown): Promise<unknown> {
    const templates = checkedTemplates(isObject(given) ? given['dynamic_templates'] : undefined, this.product);
    if (templates.length === 0 && Object.keys(semanticIn(given)).length === 0) return given;
    const before = semanticIndex('', current);
    const update = { ...reducedMapping(given), ...(templates.length === 0 ? {} : { dynamic_templates: templates }) };
    const body = { ...before, update, documents: [] };
    const { mapping } = JSON.parse(await askNative(this.native, 'make_passages', body)) as { mapping?: Json };
    const fields = semanticIn(mapping ?? before.mapping);
    if (this.product.name === 'OpenSearch' && !this.product.knn) await this.#refuseDense(fields);
    return withDefinitions(given, fields);
  }

  /** Refuses fields whose vectors the cluster has no place for; where an endpoint is yet to be made, the first document is refused. */
  async #refuseDense(fields: Readonly<Record<string, Json>>): Promise<void> {
    for (const [path, { inference_id: given }] of Object.entries(fields)) {
      const id = String(given);
      const task = await taskOf(this.native, id);
      if (task === 'text_embedding' || task === 'hybrid_embedding')
        throw notOverCluster(
          `the endpoint [${id}] of the semantic_text field [${path}], which makes dense vectors,`,
          'the cluster has no k-NN plugin',
        );
    }
  }

  /** Waits until all servers know a field that was put into an index that was there: a document that they write has to get its passages. */
  async untilKnown(): Promise<void> {
    this.forget();
    await new Promise((resolve) => setTimeout(resolve, UNTIL_KNOWN_MS));
  }

  /** The indices with a field that an inference endpoint fills or encodes queries for. */
  async using(endpoint: string): Promise<readonly string[]> {
    const all = await this.#indices.read('*', { ...ONLY_OWN, expand_wildcards: 'all' });
    const uses = ({ definition }: Slot): boolean =>
      ['inference_id', 'search_inference_id'].some((name) => definition[name] === endpoint);
    return all.flatMap(([index, mapping]) => {
      const fields = Object.entries(writtenDown(mapping)).filter((it) => isSemantic(it));
      const { semantic: state } = ownMeta(mapping);
      return fields.some(([path, definition]) => slotsOf(path, definition, state).some(uses)) ? [index] : [];
    });
  }

  /** Asks again next time, as a mapping changed. */
  forget(): void {
    this.#indices.forget();
  }
}

const writtenIn = derived(({ index, mapping }: Written): SemanticIndex | undefined => {
  const found = semanticIndex(index ?? '', mapping);
  return Object.keys(found.fields).length === 0 ? undefined : found;
});

const indicesIn = derived((all: Mappings): SemanticIndices | undefined => {
  const each = all.map(([name, mapping]) => semanticIndex(name, mapping));
  const indices = each.filter(({ fields }) => Object.keys(fields).length > 0);
  // The field may have come since the mappings were read.
  if (indices.length === 0) return undefined;
  const alike = new Map(indices.map((it) => [JSON.stringify([it.mapping, it.state]), it]));
  const others = new Set(all.flatMap(([, mapping]) => otherPaths(fromCluster(mapping))));
  return { indices, distinct: [...alike.values()], others };
});

/** That an index is not there any more. */
export function indexMissing(index: string): Error {
  return refusal(404, 'index_not_found_exception', `no such index [${index}]`);
}

/** The task type of an inference endpoint, such as `sparse_embedding`; undefined if no endpoint has the name. */
async function taskOf(native: SearchEngine, id: string): Promise<unknown> {
  try {
    const { body } = await native.execute({ op: 'get_inference', path: { inference_id: id }, query: {} });
    const { endpoints } = JSON.parse(Buffer.from(body).toString()) as { endpoints: readonly { task_type: unknown }[] };
    return endpoints[0]?.task_type;
  } catch (error) {
    if (error instanceof EngineError) return undefined;
    throw error;
  }
}

/** What the native engine does for searches and documents of indices that are kept elsewhere. */
type ForCluster =
  | 'make_passages'
  | 'bind_semantic'
  | 'best_passages'
  | 'encode_texts'
  | 'calibrate_lists'
  | 'choose_different'
  | 'score_texts'
  | 'step_model_change';

/** Asks the native engine for its part in a search or a write over a cluster; gives the body of the answer as text. */
export async function askNative(...asked: Parameters<typeof executeNative>): Promise<string> {
  return textIn(await executeNative(...asked));
}

/** Asks the same as {@link askNative}; gives the whole answer, with its warnings. */
export function executeNative(
  native: SearchEngine,
  op: ForCluster,
  body: object | string,
  cancel?: Parameters<SearchEngine['execute']>[2],
): Promise<EngineReply> {
  const sent = Buffer.from(typeof body === 'string' ? body : wellFormed(JSON.stringify(body)));
  return native.execute({ op, path: {}, query: {} }, sent, cancel);
}

/**
 * A text that `JSON.stringify` wrote, with a replacement character for each half of a character that stands alone, as the engine reads the
 * bodies of requests: `JSON.stringify` writes it as an escape, which the engine refuses.
 */
function wellFormed(json: string): string {
  return json.replace(/(?<!\\)((?:\\\\)*)\\ud[89a-f][\da-f]{2}/gu, '$1\ufffd');
}

/** The body of an answer of the native engine, as text. */
export function textIn({ body }: EngineReply): string {
  return Buffer.from(body).toString();
}

/** What the native engine is told of an index, by its mapping in the cluster. */
export function semanticIndex(index: string, mapping: unknown): SemanticIndex {
  const shown = fromCluster(mapping);
  return {
    index,
    mapping: reducedMapping(shown),
    state: ownMeta(mapping)['semantic'] ?? null,
    fields: semanticIn(shown),
  };
}

/** The places of the vectors that searches in an index read. */
export function searchedSlots({ fields, state }: SemanticIndex): readonly string[] {
  return Object.entries(fields).map(([path, definition]) => slotsOf(path, definition, state)[0].name);
}

function isText(field: unknown): boolean {
  return isObject(field) && field['type'] === 'semantic_text';
}

/** Paths of the fields of other types. */
function otherPaths(mapping: unknown, above = ''): readonly string[] {
  if (!isObject(mapping)) return [];
  return ['properties', 'fields'].flatMap((below) =>
    Object.entries(isObject(mapping[below]) ? mapping[below] : {}).flatMap(([name, field]) => {
      const path = `${above}${name}`;
      const own = isObject(field) && field['type'] !== undefined && !isText(field) ? [path] : [];
      return [...own, ...otherPaths(field, `${path}.`)];
    }),
  );
}
