import { derived } from './believed.js';
import { type DenseField, readDenseField } from './dense-fields.js';
import { type Json, isObject } from './json.js';
import type { KnownIndices, Mappings, Written } from './known-indices.js';
import { fromCluster, pathsOfTypes, writtenDown } from './mappings.js';
import type { Product } from './product.js';

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

/** Which fields of indices are of type `dense_vector`. */
export class VectorFields {
  readonly #indices: KnownIndices;
  readonly #product: Product;
  readonly #watched = derived(({ mapping }: Written): Watched | undefined => {
    const fields = denseIn(mapping);
    if (fields.size === 0) return undefined;
    const unit = [...fields].filter(
      ([, { element, similarity, index: searched }]) =>
        this.#product.name === 'OpenSearch' && searched && element === 'float' && similarity === 'dot_product',
    );
    return { fields, always: new Set(unit.map(([path]) => path)) };
  });

  constructor(indices: KnownIndices, product: Product) {
    this.#indices = indices;
    this.#product = product;
  }

  /** The fields of each index that an expression stands for and that has any. */
  async of(expression: string): Promise<readonly DenseFields[]> {
    const isOpenSearch = this.#product.name === 'OpenSearch';
    if (this.#hasNone()) return [];
    // Elasticsearch has the type itself; over OpenSearch, definitions are written down.
    const all = await (isOpenSearch ? this.#indices.own(expression) : this.#indices.whole(expression));
    const found = all.map(([, mapping]) => denseIn(mapping)).filter((fields) => fields.size > 0);
    const isInside = isOpenSearch && found.some((of) => [...of.keys()].some(isPath));
    return isInside ? this.#withNested(expression, found) : found;
  }

  #hasNone(): boolean {
    return this.#product.name === 'OpenSearch' && !this.#product.knn;
  }

  /** The fields with the nested objects that they are in: most mappings have none, and may be long. */
  async #withNested(expression: string, all: readonly DenseFields[]): Promise<readonly DenseFields[]> {
    const mappings = await this.#indices.whole(expression);
    const nested = new Set(mappings.flatMap(([, it]) => pathsOfTypes(it, NESTED)));
    const around = (path: string): string | undefined =>
      [...nested].filter((it) => path.startsWith(`${it}.`)).sort((one, other) => other.length - one.length)[0];
    return all.map((of) => new Map([...of].map(([path, field]) => [path, { ...field, nested: around(path) }])));
  }

  /** What documents of the index that a name writes to are looked through for; undefined if there is nothing. */
  async watched(name: string): Promise<Watched | undefined> {
    return this.#hasNone() ? undefined : this.#watched(await this.#indices.written(name));
  }

  /** The paths of all fields of vectors, sparse ones as well, that any of the indices has. */
  async paths(expression: string): Promise<readonly string[]> {
    return vectorPaths(await this.#indices.whole(expression));
  }
}

const vectorPaths = derived((all: Mappings): readonly string[] => [
  ...new Set(all.flatMap(([, mapping]) => pathsOfTypes(fromCluster(mapping), VECTORS))),
]);

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
