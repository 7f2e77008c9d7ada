import { Believed } from './believed.js';
import { type Template, applies, decidingTemplates, defined } from './dynamic-templates.js';
import { type Json, isJson, isObject, textOf } from './json.js';
import { fromCluster, ownMeta, ownTemplates, toCluster } from './mappings.js';
import { encodeExpression } from './names.js';
import { put } from './passage-mappings.js';
import type { Product } from './product.js';
import { passedOn } from './replies.js';
import type { SemanticFields } from './semantic-fields.js';
import type { Transport } from './transport.js';
import type { VectorFields } from './vector-fields.js';

/** What is needed to put fields into the mapping of an index. */
interface Context {
  readonly transport: Transport;
  readonly product: Product;
  readonly vectors: VectorFields;
  readonly semantic: SemanticFields;
}

/** Texts that are dates where nothing says which texts are. */
const DATE = /^\d{4}(?:-\d{2}(?:-\d{2}(?:T[\d:.,+\-Z]*)?)?|\/\d{2}\/\d{2}(?: .*)?)$/;

/** Fields that a document brings, by their paths. */
type Fields = ReadonlyMap<string, Json>;

/**
 * Fields that come by a dynamic template of which the cluster cannot make them, as their vectors have another place, or another type: they
 * are put into the mapping before the first document that has them. What the cluster said of templates is believed for five seconds.
 */
export class DynamicFields {
  readonly #context: Context;
  readonly #known = new Believed<Json | undefined>();

  constructor(context: Context) {
    this.#context = context;
  }

  /**
   * Puts the fields that documents bring into the mapping of the index that a name writes to.
   *
   * @param documents as they are written; what is no object is the cluster's to refuse
   * @throws {EngineError} 400 for a field that cannot be made
   */
  async prepare(name: string, documents: () => Iterable<string>): Promise<void> {
    const mapping = await this.#known.of(name, () => this.#look(name));
    if (mapping === undefined) return;
    const templates = decidingTemplates(mapping['dynamic_templates'], this.#context.product);
    const found = new Map<string, Json>();
    for (const document of documents()) {
      const value: unknown = isJson(document) ? JSON.parse(document) : undefined;
      if (isObject(value)) brought(mapping, templates, value, found);
    }
    if (found.size > 0) await this.#add(name, found);
  }

  /** The mapping of the index, as users see it, if it has such templates. */
  async #look(name: string): Promise<Json | undefined> {
    const { transport } = this.#context;
    const path = `/${encodeExpression(name)}/_mapping`;
    const { status, body } = await transport.json({ method: 'GET', path });
    let found = status === 200 && isObject(body) ? Object.values(body).at(-1) : undefined;
    if (status === 404) {
      const simulated = `/_index_template/_simulate_index/${encodeExpression(name)}`;
      const answer = await transport.json({ method: 'POST', path: simulated });
      found = answer.status === 200 && isObject(answer.body) ? answer.body['template'] : undefined;
    }
    const mapping = isObject(found) ? found['mappings'] : undefined;
    if (ownTemplates(ownMeta(mapping)['templates'], this.#context.product).length === 0) return undefined;
    return fromCluster(mapping) as Json;
  }

  /** Whether documents may bring such fields to the index that a name writes to. */
  async mayBring(name: string): Promise<boolean> {
    return (await this.#known.of(name, () => this.#look(name))) !== undefined;
  }

  async #add(name: string, fields: Fields): Promise<void> {
    const { transport, product, vectors, semantic } = this.#context;
    const read = async (): Promise<readonly (readonly [string, unknown])[]> => {
      const { status, body } = await transport.json({ method: 'GET', path: `/${encodeExpression(name)}/_mapping` });
      const all = status === 200 && isObject(body) ? Object.entries(body) : [];
      return all.map(([index, it]) => [index, isObject(it) ? it['mappings'] : undefined]);
    };
    // A template has its mapping once the index is there.
    if ((await read()).length === 0) await semantic.made(name);
    for (const [index] of await read()) {
      await semantic.turns.alone(index, async () => {
        const mapping = (await read()).find(([one]) => one === index)?.[1];
        const shown = fromCluster(mapping);
        const properties = {};
        for (const [path, field] of fields) if (!has(shown, path.split('.'))) put(properties, path, field);
        if (Object.keys(properties).length === 0) return;
        const body = JSON.stringify(toCluster(await semantic.checked({ properties }, mapping), product, mapping ?? {}));
        const path = `/${encodeURIComponent(index)}/_mapping`;
        const answered = await transport.ask({ method: 'PUT', path, body, repeatable: true });
        if (answered.status !== 200) throw passedOn(answered);
      });
    }
    this.forget();
    vectors.forget();
    semantic.forget();
  }

  /** Asks again next time, as a mapping changed. */
  forget(): void {
    this.#known.forget();
  }
}

function has(mapping: unknown, [name = '', ...rest]: readonly string[]): boolean {
  const properties = isObject(mapping) ? mapping['properties'] : undefined;
  if (!isObject(properties) || !(name in properties)) return false;
  return rest.length === 0 || has(properties[name], rest);
}

/** Gathers the fields that a document brings and that come by a template of Sparrow's. */
function brought(mapping: Json, templates: readonly Template[], document: Json, found: Map<string, Json>): void {
  const finds = (name: string, path: string, kind: string): Json | undefined => {
    const template = templates.find((it) => applies(it, name, path, kind));
    return template === undefined ? undefined : defined(template, name, kind);
  };
  const walk = (object: Json, within: unknown, above: string, dynamic: boolean): void => {
    for (const [given, value] of Object.entries(object)) {
      const [name = '', ...rest] = given.split('.');
      const path = `${above}${name}`;
      const known = isObject(within) && isObject(within['properties']) ? within['properties'][name] : undefined;
      const inside = rest.length > 0 ? [{ [rest.join('.')]: value }] : [value].flat().filter(isObject);
      if (inside.length > 0) {
        const own = isObject(known) ? known['dynamic'] : undefined;
        const isDynamic = own === undefined ? dynamic : textOf(own) === 'true';
        // What is in an object of another kind is no field.
        if (known === undefined || (isObject(known) && 'properties' in known) || isPlainObject(known))
          for (const one of inside) walk(one, known, `${path}.`, isDynamic);
        continue;
      }
      const first = [value].flat(Infinity).find((it) => it !== null && it !== undefined);
      if (known !== undefined || !dynamic || first === undefined || found.has(path)) continue;
      // A list is one value to a field of vectors, and several to all others.
      const whole = Array.isArray(value) ? finds(name, path, 'object') : undefined;
      const field = isVector(whole) ? whole : finds(name, path, kindOf(first, mapping['date_detection'] !== false));
      if (field?.['type'] === 'semantic_text') found.set(path, field);
      else if (isVector(field) && (field === whole || typeof value === 'string'))
        found.set(path, withDims(field, value));
    }
  };
  walk(document, mapping, '', mapping['dynamic'] === undefined || textOf(mapping['dynamic']) === 'true');
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
  return isObject(field) && (field['type'] === undefined || field['type'] === 'object' || field['type'] === 'nested');
}

/** What a template calls the kind of a value. */
function kindOf(value: unknown, detectsDates: boolean): string {
  if (typeof value === 'boolean') return 'boolean';
  if (typeof value === 'number') return Number.isInteger(value) ? 'long' : 'double';
  return detectsDates && DATE.test(String(value)) ? 'date' : 'string';
}
