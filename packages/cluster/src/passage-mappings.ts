import { knnVector } from './dense-fields.js';
import { illegal } from './errors.js';
import { type Json, isObject } from './json.js';
import type { Product } from './product.js';

/**
 * The object beside the members of a document in which its passages are: under `payload` all that is known of them, as the native engine
 * stores it, and under `fields`, by the path of each `semantic_text` field, an object of type `nested` with the vectors of each passage.
 * A field whose model was changed has its vectors under `slot1` or a later number, and while it is changed in both places.
 * `_source` leaves it out, so that no request shows it.
 */
export const COMPANION = '_sparrow';
/** The place of the payload. */
export const PAYLOAD = `${COMPANION}.payload`;

/** What stands between the path of a field and the number of one of its places for vectors, but for the first. */
const MARK = '..';

/** The nested objects with the passages of a field, by its path, or by one of its slots as the native engine names them: `path..1`. */
export function passagesOf(slot: string): string {
  const [path = '', number] = slot.split(MARK);
  return number === undefined ? `${COMPANION}.fields.${path}` : `${COMPANION}.slot${number}.${path}`;
}

/** The path of the field that has a slot. */
export function pathOfSlot(slot: string): string {
  return slot.split(MARK)[0] ?? slot;
}

/** A place for vectors of a field, and how they are made. */
export interface Slot {
  readonly name: string;
  readonly definition: Json;
}

/**
 * The places in which a field has vectors: that which is searched, and beside it another one while its model is changed.
 *
 * @param state what the native engine keeps of fields that a mapping does not show
 */
export function slotsOf(path: string, definition: Json, state: unknown): readonly [Slot, ...Slot[]] {
  const of = isObject(state) && isObject(state[path]) ? state[path] : {};
  const name = (number: unknown): string => (Number(number ?? 0) === 0 ? path : `${path}${MARK}${String(number)}`);
  const searched = { name: name(of['active']), definition };
  const { beside } = of;
  if (!isObject(beside) || !isObject(beside['parameters'])) return [searched];
  return [searched, { name: name(beside['number']), definition: beside['parameters'] }];
}

/** What a `semantic_text` field itself is in the cluster: its texts are shown, and words in them are not looked for. */
export const TEXTS: Json = { type: 'text', index: false };

/** What the first vectors of a field have settled about it. */
export interface Settled {
  readonly tokens: boolean;
  /** The field that its dense vectors would be, if it has any. */
  readonly vector: Json | undefined;
}

/** @returns undefined for a field of which no document has a passage yet */
export function settledOf({ model_settings: model, index_options: options }: Json): Settled | undefined {
  if (!isObject(model)) return undefined;
  const task = model['task_type'];
  const own = isObject(options) ? options['dense_vector'] : undefined;
  const vector = {
    type: 'dense_vector',
    dims: model['dimensions'],
    similarity: model['similarity'],
    ...(own === undefined ? {} : { index_options: own }),
  };
  return { tokens: task !== 'text_embedding', vector: task === 'sparse_embedding' ? undefined : vector };
}

/**
 * The mapping of the companion, for fields with the given definitions.
 *
 * @param state what the native engine keeps of fields that a mapping does not show
 * @throws {EngineError} 400 for vectors that the cluster cannot hold
 */
export function companionMapping(fields: Json, product: Product, state?: unknown): Json | undefined {
  const semantic = Object.entries(fields).filter((it) => isSemantic(it));
  if (semantic.length === 0) return undefined;
  const properties: Record<string, unknown> = {
    payload: { type: 'binary', store: true },
    fields: { type: 'object', properties: {} },
  };
  for (const [path, field] of semantic) {
    for (const { name, definition } of slotsOf(path, field, state)) {
      const settled = settledOf(definition);
      const place = passagesOf(name).slice(COMPANION.length + 1);
      if (settled !== undefined)
        put(properties, place, { type: 'nested', properties: vectorsOf(path, settled, product) });
    }
  }
  // Whatever is not mapped would be lost without a word; so it is refused.
  return { type: 'object', dynamic: 'strict', properties };
}

function vectorsOf(path: string, { tokens, vector }: Settled, product: Product): Json {
  const isOpenSearch = product.name === 'OpenSearch';
  return {
    ...(tokens ? { tokens: { type: isOpenSearch ? 'rank_features' : 'sparse_vector' } } : {}),
    ...(vector === undefined ? {} : { vector: isOpenSearch ? knnVector(path, vector, product) : vector }),
  };
}

/** Puts a field where its path says, with an object for each name before the last one. */
export function put(properties: Record<string, unknown>, path: string, field: Json): void {
  const [name = '', ...rest] = path.split('.');
  if (rest.length === 0) {
    properties[name] = field;
    return;
  }
  // A field may have the name of what every object inherits.
  if (!Object.hasOwn(properties, name)) properties[name] = { type: 'object', properties: {} };
  const object = properties[name] as { properties: Record<string, unknown> };
  put(object.properties, rest.join('.'), field);
}

export function isSemantic(entry: readonly [string, unknown]): entry is readonly [string, Json] {
  return isObject(entry[1]) && entry[1]['type'] === 'semantic_text';
}

/** The definitions of all `semantic_text` fields of a mapping, by their paths. */
export function semanticIn(mapping: unknown, above = ''): Readonly<Record<string, Json>> {
  const found: Record<string, Json> = {};
  if (!isObject(mapping)) return found;
  for (const below of ['properties', 'fields']) {
    for (const entry of Object.entries(isObject(mapping[below]) ? mapping[below] : {})) {
      const path = `${above}${entry[0]}`;
      if (isSemantic(entry)) found[path] = entry[1];
      else Object.assign(found, semanticIn(entry[1], `${path}.`));
    }
  }
  return found;
}

/** What of a mapping says how passages are made: its `semantic_text` fields, and the fields that give them texts. */
export function reducedMapping(mapping: unknown): Json {
  const paths = new Set(Object.keys(semanticIn(mapping)));
  const kept = (given: unknown): Json =>
    Object.fromEntries(
      Object.entries(isObject(given) ? given : {}).flatMap(([name, field]) => {
        if (!isObject(field)) return [];
        if (field['type'] === 'semantic_text') return [[name, field]];
        if (isObject(field['properties'])) {
          const properties = kept(field['properties']);
          return Object.keys(properties).length === 0 ? [] : [[name, { properties }]];
        }
        const fields = kept(field['fields']);
        const copies = [field['copy_to']].flat().filter((to) => typeof to === 'string' && paths.has(to));
        const hasFields = Object.keys(fields).length > 0;
        if (!hasFields && copies.length === 0) return [];
        const type = hasFields ? field['type'] : 'text';
        return [[name, { type, ...(hasFields ? { fields } : {}), ...(copies.length > 0 ? { copy_to: copies } : {}) }]];
      }),
    );
  return { properties: kept(isObject(mapping) ? mapping['properties'] : undefined) };
}

/** A mapping whose `semantic_text` fields have other definitions. */
export function withDefinitions(mapping: unknown, definitions: Readonly<Record<string, Json>>, above = ''): unknown {
  if (!isObject(mapping)) return mapping;
  const changed: Record<string, unknown> = { ...mapping };
  for (const below of ['properties', 'fields']) {
    if (!isObject(mapping[below])) continue;
    changed[below] = Object.fromEntries(
      Object.entries(mapping[below]).map(([name, field]) => {
        const path = `${above}${name}`;
        const own = Object.hasOwn(definitions, path) ? definitions[path] : undefined;
        return [name, own ?? withDefinitions(field, definitions, `${path}.`)];
      }),
    );
  }
  return changed;
}

/** `_source` of a mapping, so that it leaves the companion out. */
export function withoutCompanion(given: unknown): Json {
  const source = isObject(given) ? given : {};
  if (source['enabled'] === false) throw illegal('[semantic_text] needs [_source], which is disabled');
  const excludes = [source['excludes'] ?? []].flat();
  return { ...source, excludes: excludes.includes(COMPANION) ? excludes : [...excludes, COMPANION] };
}

/** The same as it was put; undefined where nothing was. */
export function sourceAsPut(given: unknown): Json | undefined {
  if (!isObject(given)) return undefined;
  const { excludes, ...rest } = given;
  const left = [excludes ?? []].flat().filter((it) => it !== COMPANION);
  const shown = { ...rest, ...(left.length === 0 ? {} : { excludes: left }) };
  return Object.keys(shown).length === 0 ? undefined : shown;
}

/** Whether an index was made so that it can have passages: what `_source` leaves out cannot be said later. */
export function leavesOut(mapping: unknown): boolean {
  const source = isObject(mapping) ? mapping['_source'] : undefined;
  return isObject(source) && [source['excludes'] ?? []].flat().includes(COMPANION);
}
