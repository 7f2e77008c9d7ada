import { derived } from './believed.js';
import { type Template, applies, decidingTemplates, defined } from './dynamic-templates.js';
import { illegal, refusal } from './errors.js';
import { type Json, isJson, isObject, textOf } from './json.js';
import type { KnownIndices, Written } from './known-indices.js';
import { fromCluster, ownMeta, ownTemplates, toCluster } from './mappings.js';
import { put } from './passage-mappings.js';
import type { Product } from './product.js';
import { passedOn } from './replies.js';
import type { SemanticFields } from './semantic-fields.js';
import type { Transport } from './transport.js';

/** The cluster, and what is known of its indices and the passages in them. */
interface Context {
  readonly transport: Transport;
  readonly product: Product;
  readonly indices: KnownIndices;
  readonly semantic: SemanticFields;
}

/** Texts that are dates where nothing says which texts are. */
const DATE = /^\d{4}(?:-\d{2}(?:-\d{2}(?:T[\d:.,+\-Z]*)?)?|\/\d{2}\/\d{2}(?: .*)?)$/;

/** Levels of objects in which fields come by templates, as in the native engine and, unless they are told otherwise, in clusters. */
const MOST_LEVELS = 20;

/** Fields that a document brings, by their paths. */
type Fields = ReadonlyMap<string, Json>;

/**
 * Fields that come by a dynamic template of which the cluster cannot make them, as their vectors have another place, or another type: they
 * are put into the mapping before the first document that has them.
 */
export class DynamicFields {
  readonly #context: Context;
  /** The mapping of an index as users see it; undefined where the cluster can make the fields of all dynamic templates itself. */
  readonly #shown = derived(({ mapping }: Written): Json | undefined => {
    const brings = ownTemplates(ownMeta(mapping)['templates'], this.#context.product).length > 0;
    return brings ? (fromCluster(mapping) as Json) : undefined;
  });

  constructor(context: Context) {
    this.#context = context;
  }

  /**
   * Puts the fields that documents bring into the mapping of the index that a name writes to.
   *
   * @param documents as they are written; what is no object is the cluster's to refuse
   * @param onlyAlias whether only an alias may be written to, so that no index may be made of the name
   * @throws {EngineError} 400 for a field that cannot be made, 404 for a name that is no alias and has to be one, and the cluster's own
   *   answer where it does not say what is there
   */
  async prepare(name: string, documents: () => Iterable<string>, onlyAlias = false): Promise<void> {
    const { indices, product } = this.#context;
    const written = await indices.written(name);
    if (onlyAlias && written.isMissing) throw noAlias(name);
    const mapping = this.#shown(written);
    if (mapping === undefined) return;
    const templates = decidingTemplates(mapping['dynamic_templates'], product);
    const found = new Map<string, Json>();
    for (const document of documents()) {
      const value: unknown = isJson(document) ? JSON.parse(document) : undefined;
      if (isObject(value)) brought(mapping, templates, value, found);
    }
    if (found.size > 0) await this.#add(name, found, onlyAlias);
  }

  /** Whether documents may bring such fields to the index that a name writes to. */
  async mayBring(name: string): Promise<boolean> {
    return this.#shown(await this.#context.indices.written(name)) !== undefined;
  }

  /** Whether documents may bring such fields to any of some indices. */
  async mayBringAny(expression: string): Promise<boolean> {
    const all = await this.#context.indices.own(expression);
    return all.some(([index, mapping]) => this.#shown({ index, isMissing: false, mapping }) !== undefined);
  }

  async #add(name: string, fields: Fields, onlyAlias: boolean): Promise<void> {
    const { transport, product, indices, semantic } = this.#context;
    // The answer that is believed may be about the index before the last rollover, or about one that was deleted.
    let written = await indices.writtenNow(name);
    if (written.isMissing) {
      if (onlyAlias) throw noAlias(name);
      // A template has its mapping once the index is there.
      await semantic.made(name);
      written = await indices.writtenNow(name);
    }
    indices.forget();
    const { index, isMissing } = written;
    // What cannot be made, or takes no writes, is the cluster's to refuse.
    if (index === undefined || isMissing || this.#shown(written) === undefined) return;
    await semantic.turns.alone(index, async () => {
      const [[, mapping] = []] = await indices.read(index);
      const now = fromCluster(mapping);
      const properties = Object.create(null) as Record<string, unknown>;
      for (const [field, definition] of fields) if (!has(now, field.split('.'))) put(properties, field, definition);
      if (Object.keys(properties).length === 0) return;
      const body = JSON.stringify(toCluster(await semantic.checked({ properties }, mapping), product, mapping ?? {}));
      const path = `/${encodeURIComponent(index)}/_mapping`;
      const answered = await transport.ask({ method: 'PUT', path, body, repeatable: true });
      if (answered.status !== 200) throw passedOn(answered);
    });
    indices.forget();
  }
}

function noAlias(name: string): Error {
  const reason = `no such index [${name}] and [require_alias] request flag is [true] and [${name}] is not an alias`;
  return refusal(404, 'index_not_found_exception', reason);
}

function has(mapping: unknown, path: readonly string[]): boolean {
  return path.reduce<unknown>(memberOf, mapping) !== undefined;
}

/** Gathers the fields that a document brings and that come by a template of Sparrow's. */
function brought(mapping: Json, templates: readonly Template[], document: Json, found: Map<string, Json>): void {
  const finds = (name: string, path: string, kind: string): Json | undefined => {
    const template = templates.find((it) => applies(it, name, path, kind));
    return template === undefined ? undefined : defined(template, name, kind);
  };
  const walkInto = (object: Json, place: Place): void => {
    for (const [given, value] of Object.entries(object)) walk(given.split('.'), 0, value, place);
  };
  const walk = (names: readonly string[], at: number, value: unknown, place: Place): void => {
    const name = names[at] ?? '';
    const path = `${place.above}${name}`;
    const known = memberOf(place.within, name);
    const isLast = at === names.length - 1;
    const inside = isLast ? [value].flat().filter(isObject) : [];
    if (!isLast || inside.length > 0) {
      // Members of an object that takes no new fields, and of a field that is no object, do not become fields.
      if (known === undefined ? !place.dynamic : !isPlainObject(known)) return;
      // The cluster has the same limit, and each level takes a place on the stack.
      if (known === undefined && place.level >= MOST_LEVELS) throw tooDeep();
      const own = isObject(known) ? known['dynamic'] : undefined;
      const dynamic = own === undefined ? place.dynamic : textOf(own) === 'true';
      const inner = { within: known, above: `${path}.`, dynamic, level: place.level + 1 };
      if (!isLast) walk(names, at + 1, value, inner);
      for (const one of inside) walkInto(one, inner);
      return;
    }
    if (known !== undefined || !place.dynamic || found.has(path)) return;
    const first = [value].flat(Infinity).find((it) => it !== null && it !== undefined);
    if (first === undefined) return;
    // A list is one value to a field of vectors, and several to all others.
    const whole = Array.isArray(value) ? finds(name, path, 'object') : undefined;
    const field = isVector(whole) ? whole : finds(name, path, kindOf(first, mapping['date_detection'] !== false));
    const isMade =
      field?.['type'] === 'semantic_text' || (isVector(field) && (field === whole || typeof value === 'string'));
    if (field === undefined || !isMade) return;
    // To put something into an object under this name changes what the object inherits.
    if (path.split('.').includes('__proto__'))
      throw illegal(`a field of type [${String(field['type'])}] cannot be called [__proto__]`);
    found.set(path, isVector(field) ? withDims(field, value) : field);
  };
  const dynamic = mapping['dynamic'] === undefined || textOf(mapping['dynamic']) === 'true';
  walkInto(document, { within: mapping, above: '', dynamic, level: 1 });
}

/** Where a member of a document is. */
interface Place {
  /** The mapping of the object around it. */
  readonly within: unknown;
  /** What stands in front of its name in its path. */
  readonly above: string;
  /** Whether the object takes new fields. */
  readonly dynamic: boolean;
  /** Levels of objects down to here; that of the document is the first. */
  readonly level: number;
}

function tooDeep(): Error {
  const reason = `The depth of the field has exceeded the allowed limit of [${String(MOST_LEVELS)}].`;
  return refusal(400, 'document_parsing_exception', reason);
}

/** The field of an object with a name, which may be that of what every object inherits. */
function memberOf(mapping: unknown, name: string): unknown {
  const properties = isObject(mapping) ? mapping['properties'] : undefined;
  return isObject(properties) && Object.hasOwn(properties, name) ? properties[name] : undefined;
}

function isVector(field: Json | undefined): field is Json {
  return field?.['type'] === 'dense_vector';
}

/** A field of vectors whose definition leaves their length to the first document. */
function withDims(field: Json, value: unknown): Json {
  if (field['dims'] !== undefined || !Array.isArray(value)) return field;
  return { ...field, dims: value.length * (field['element_type'] === 'bit' ? 8 : 1) };
}

function isPlainObject(field: unknown): boolean {
  if (!isObject(field)) return false;
  return 'properties' in field || [undefined, 'object', 'nested'].includes(textOf(field['type']));
}

/** What a template calls the kind of a value. */
function kindOf(value: unknown, detectsDates: boolean): string {
  if (typeof value === 'boolean') return 'boolean';
  if (typeof value === 'number') return Number.isInteger(value) ? 'long' : 'double';
  return detectsDates && DATE.test(String(value)) ? 'date' : 'string';
}
