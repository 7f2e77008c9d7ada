import { notOverCluster, refusal } from './errors.js';
import { isObject, textOf } from './json.js';
import type { Product } from './product.js';

/** What vectors of a `dense_vector` field are made of: floats, whole numbers from -128 to 127, or bits, eight to such a number. */
export type Element = (typeof ELEMENTS)[number];
const ELEMENTS = ['float', 'byte', 'bit'] as const;

/** How vectors of a `dense_vector` field are compared. */
export type Similarity = (typeof SIMILARITIES)[number];
const SIMILARITIES = ['cosine', 'dot_product', 'l2_norm', 'max_inner_product'] as const;

/** A `dense_vector` field as its definition says, with the defaults of the native engine. */
export interface DenseField {
  /** Numbers of a vector, or bits; undefined where the first document says. */
  readonly dims: number | undefined;
  readonly element: Element;
  readonly similarity: Similarity;
  /** Whether vectors are searched by `knn`; scripts compare those of other fields, too. */
  readonly index: boolean;
  /** The nested objects that have the vectors, where OpenSearch has to be told. */
  readonly nested?: string | undefined;
}

type Json = Readonly<Record<string, unknown>>;

const KEYS: ReadonlySet<string> = new Set([
  ...['type', 'dims', 'element_type', 'similarity', 'index', 'index_options', 'meta'],
]);
/** All kinds of index are one over OpenSearch: a graph of the vectors themselves, whose scores are exact. */
const INDEX_TYPES: ReadonlySet<string> = new Set([
  ...['hnsw', 'int8_hnsw', 'int4_hnsw', 'bbq_hnsw', 'flat', 'int8_flat', 'int4_flat', 'bbq_flat'],
]);

/** Longest vector of floats or bytes, as in the native engine; one of bits has eight times as many. */
const MOST_DIMS = 4096;

/** Shortest vector with codes of one bit, as in the native engine. */
const FEWEST_BITS = 64;

/** Links of a vector in the graph, and candidates that they are chosen from, where a mapping says nothing. */
const LINKS = 16;
const CANDIDATES = 100;

/**
 * Reads the definition of a `dense_vector` field.
 *
 * @param path of the field, for errors
 * @throws {EngineError} 400 `mapper_parsing_exception` for values that the native engine refuses as well
 */
export function readDenseField(path: string, field: Json): DenseField {
  const element = oneOf(ELEMENTS, field['element_type'] ?? 'float');
  if (element === undefined) {
    const given = textOf(field['element_type']) ?? '';
    throw malformed(`invalid element_type [${given}]; available types are [byte, float, bit]`);
  }
  const similarity = oneOf(SIMILARITIES, field['similarity'] ?? (element === 'bit' ? 'l2_norm' : 'cosine'));
  if (similarity === undefined) {
    const given = textOf(field['similarity']) ?? '';
    throw malformed(
      `Unknown value [${given}] for field [similarity] - accepted values are [${SIMILARITIES.join(', ')}]`,
    );
  }
  if (element === 'bit' && similarity !== 'l2_norm')
    throw malformed(`The [${similarity}] similarity is not supported for [bit] vectors, only [l2_norm] is`);
  const index = (textOf(field['index']) ?? 'true') === 'true';
  for (const name of ['similarity', 'index_options']) {
    if (!index && field[name] !== undefined) {
      throw malformed(`Field [${name}] can only be specified for a field of type [dense_vector] when it is indexed`);
    }
  }
  return { dims: dimsOf(path, field['dims'], element), element, similarity, index };
}

/**
 * A `dense_vector` field as OpenSearch has it. What kinds of index mean for speed and space is not kept: there is one kind, a graph.
 *
 * @throws {EngineError} 400 for a definition that the native engine refuses, or OpenSearch cannot hold
 */
export function knnVector(path: string, field: Json, product: Product): Json {
  const name = `the dense_vector field [${path}]`;
  if (!product.knn) throw notOverCluster(`type [dense_vector] of field [${path}]`, 'the cluster has no k-NN plugin');
  const unknown = Object.keys(field).find((key) => !KEYS.has(key));
  if (unknown !== undefined)
    throw malformed(`unknown parameter [${unknown}] on mapper [${path}] of type [dense_vector]`);
  const dense = readDenseField(path, field);
  if (dense.dims === undefined) throw notOverCluster(`${name} without [dims]`, 'give the number of dimensions');
  const options = isObject(field['index_options']) ? field['index_options'] : {};
  const { type = 'hnsw', m = LINKS, ef_construction: candidates = CANDIDATES } = options;
  if (!INDEX_TYPES.has(textOf(type) ?? ''))
    throw notOverCluster(`index type [${textOf(type) ?? ''}] of ${name}`, `use one of ${[...INDEX_TYPES].join(', ')}`);
  const problem = codesProblem(textOf(type) ?? '', dense.dims);
  if (problem !== undefined) throw malformed(problem);
  const { meta } = field;
  return {
    type: 'knn_vector',
    dimension: dense.dims,
    data_type: dense.element === 'bit' ? 'binary' : dense.element,
    method: {
      name: 'hnsw',
      engine: product.vectorEngine,
      space_type: spaceOf(dense),
      parameters: { m, ef_construction: candidates },
    },
    ...(meta === undefined ? {} : { meta }),
  };
}

/** Why the native engine has no codes of a type for vectors with as many dimensions, though OpenSearch needs none. */
function codesProblem(type: string, dims: number): string | undefined {
  if (type.startsWith('int4_') && dims % 2 !== 0)
    return `${type} only supports even dimensions; provided=${String(dims)}`;
  if (type.startsWith('bbq_') && dims < FEWEST_BITS)
    return `${type} does not support dimensions fewer than ${String(FEWEST_BITS)}; provided=${String(dims)}`;
  return undefined;
}

/** The name that OpenSearch has for a comparison. */
export function spaceOf({ element, similarity, index }: DenseField): string {
  if (element === 'bit') return 'hamming';
  // A field that is not indexed may hold vectors of length 0, of which no cosine can be taken.
  if (!index) return 'l2';
  // The product of vectors of length 1 is their cosine.
  if (similarity === 'cosine' || (similarity === 'dot_product' && element === 'float')) return 'cosinesimil';
  return similarity === 'l2_norm' ? 'l2' : 'innerproduct';
}

function dimsOf(path: string, given: unknown, element: Element): number | undefined {
  if (given === undefined || given === null) return undefined;
  const dims = Number(given);
  if (!Number.isInteger(dims))
    throw malformed(`Failed to parse value [${textOf(given) ?? ''}] for parameter [dims] of field [${path}]`);
  const most = element === 'bit' ? 8 * MOST_DIMS : MOST_DIMS;
  if (dims < 1 || dims > most) {
    throw malformed(`The number of dimensions should be in the range [1, ${String(most)}] but was [${String(dims)}]`);
  }
  if (element === 'bit' && dims % 8 !== 0) {
    throw malformed(`The number of dimensions should be a multiple of 8 for [bit] vectors but was [${String(dims)}]`);
  }
  return dims;
}

function oneOf<T extends string>(all: readonly T[], given: unknown): T | undefined {
  return all.find((it) => it === given);
}

function malformed(reason: string): Error {
  return refusal(400, 'mapper_parsing_exception', `Failed to parse mapping: ${reason}`);
}
