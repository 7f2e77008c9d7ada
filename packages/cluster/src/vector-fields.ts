import { Believed } from './believed.js';
import { type DenseField, readDenseField } from './dense-fields.js';
import { type Json, isObject } from './json.js';
import { META, fromCluster, pathsOfTypes, writtenDown } from './mappings.js';
import { encodeExpression } from './names.js';
import type { Product } from './product.js';
import type { Transport } from './transport.js';

/** The `dense_vector` fields of an index by their paths. */
export type DenseFields = ReadonlyMap<string, DenseField>;

/** What documents are looked through for, of one index. */
export interface Watched {
  readonly fields: DenseFields;
  /** Whether the vectors of some field have to be looked at even where they are arrays: OpenSearch does not check their length. */
  readonly always: ReadonlySet<string>;
}

/** Types of fields that hold vectors, also of those that Sparrow did not make. */
const VECTORS: ReadonlySet<string> = new Set(['dense_vector', 'sparse_vector', 'knn_vector', 'rank_features']);

const NESTED: ReadonlySet<string> = new Set(['nested']);

/** Which fields of indices are of type `dense_vector`. What the cluster said of it is believed for five seconds. */
export class VectorFields {
  readonly #transport: Transport;
  readonly #product: Product;
  readonly #known = new Believed<readonly DenseFields[]>();
  readonly #paths = new Believed<readonly string[]>();

  constructor(transport: Transport, product: Product) {
    this.#transport = transport;
    this.#product = product;
  }

  /** The fields of each index that an expression stands for and that has any. */
  async of(expression: string): Promise<readonly DenseFields[]> {
    if (this.#product.name === 'OpenSearch' && !this.#product.knn) return [];
    return this.#known.of(expression, async () => {
      // Elasticsearch has the type itself; over OpenSearch, definitions are written down.
      const part = this.#product.name === 'OpenSearch' ? `_meta.${META}.fields` : 'properties';
      const { status, body } = await this.#transport.json({
        method: 'GET',
        path: `/${encodeExpression(expression)}/_mapping`,
        query: { ignore_unavailable: 'true', filter_path: `*.mappings.${part}` },
      });
      if (status !== 200 || !isObject(body)) return [];
      const found = Object.values(body)
        .map((it) => denseIn(isObject(it) ? it['mappings'] : undefined))
        .filter((fields) => fields.size > 0);
      const isInside = this.#product.name === 'OpenSearch' && found.some((of) => [...of.keys()].some(isPath));
      return isInside ? this.#withNested(expression, found) : found;
    });
  }

  /** The fields with the nested objects that they are in: most mappings have none, and may be long. */
  async #withNested(expression: string, all: readonly DenseFields[]): Promise<readonly DenseFields[]> {
    const { body } = await this.#transport.json({
      method: 'GET',
      path: `/${encodeExpression(expression)}/_mapping`,
      query: { ignore_unavailable: 'true' },
    });
    const mappings = Object.values(isObject(body) ? body : {}).map((it) => (isObject(it) ? it['mappings'] : undefined));
    const nested = new Set(mappings.flatMap((it) => pathsOfTypes(it, NESTED)));
    const around = (path: string): string | undefined =>
      [...nested].filter((it) => path.startsWith(`${it}.`)).sort((one, other) => other.length - one.length)[0];
    return all.map((of) => new Map([...of].map(([path, field]) => [path, { ...field, nested: around(path) }])));
  }

  /** What documents of an index are looked through for; undefined if there is nothing. */
  async watched(index: string): Promise<Watched | undefined> {
    const [fields] = await this.of(index);
    if (fields === undefined) return undefined;
    const unit = [...fields].filter(
      ([, { element, similarity, index: searched }]) =>
        this.#product.name === 'OpenSearch' && searched && element === 'float' && similarity === 'dot_product',
    );
    return { fields, always: new Set(unit.map(([path]) => path)) };
  }

  /** The paths of all fields of vectors, sparse ones as well, that any of the indices has. */
  paths(expression: string): Promise<readonly string[]> {
    return this.#paths.of(expression, async () => {
      const path = `/${encodeExpression(expression)}/_mapping`;
      const { status, body } = await this.#transport.json({
        method: 'GET',
        path,
        query: { ignore_unavailable: 'true' },
      });
      const found = status === 200 && isObject(body) ? Object.values(body) : [];
      return [
        ...new Set(
          found.flatMap((it) => pathsOfTypes(fromCluster(isObject(it) ? it['mappings'] : undefined), VECTORS)),
        ),
      ];
    });
  }

  /** Asks again next time, as a mapping changed. */
  forget(): void {
    this.#paths.forget();
    this.#known.forget();
  }
}

function isPath(name: string): boolean {
  return name.includes('.');
}

function denseIn(mappings: unknown): DenseFields {
  const found = new Map<string, DenseField>();
  for (const [path, field] of Object.entries(writtenDown(mappings))) add(found, path, field);
  if (isObject(mappings)) gather(mappings, '', found);
  return found;
}

function gather(mapping: Json, above: string, found: Map<string, DenseField>): void {
  for (const [name, field] of Object.entries(isObject(mapping['properties']) ? mapping['properties'] : {})) {
    add(found, `${above}${name}`, field);
    if (isObject(field)) gather(field, `${above}${name}.`, found);
  }
}

function add(found: Map<string, DenseField>, path: string, field: unknown): void {
  if (!isObject(field) || field['type'] !== 'dense_vector') return;
  try {
    found.set(path, readDenseField(path, field));
  } catch {
    // Elasticsearch knows definitions that the native engine does not; such vectors are left to it.
  }
}
