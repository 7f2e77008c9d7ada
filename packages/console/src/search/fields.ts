// What a mapping can be searched by.
import { BY_WORDS } from '../../../engine/src/diagnostics/named-fields';

export interface Property {
  readonly type?: string;
  readonly properties?: Properties;
  readonly fields?: Properties;
  readonly inference_id?: string;
  readonly model_settings?: { readonly task_type?: string };
  readonly copy_to?: string | readonly string[];
  readonly [other: string]: unknown;
}
export type Properties = Readonly<Record<string, Property>>;

export interface Field {
  /** Full name, with the names of the objects around it. */
  readonly name: string;
  readonly type: string;
  readonly property: Property;
}

export type Kind = 'words' | 'meaning' | 'dense' | 'hybrid';

/** One way to search an index. */
export interface Way {
  readonly kind: Kind;
  /** Type of the field: `text` for words, `hybrid_text` for a `semantic_text` that holds both kinds of vectors. */
  readonly type: string;
  readonly fields: readonly string[];
}

export const KINDS: readonly Kind[] = ['words', 'meaning', 'dense', 'hybrid'];

export const LABELS: Readonly<Record<Kind, string>> = {
  words: 'Words',
  meaning: 'Sparse',
  dense: 'Dense',
  hybrid: 'Hybrid',
};

export const HINTS: Readonly<Record<Kind, string>> = {
  words: 'Texts that contain the words of the question (BM25)',
  meaning:
    'Texts that say the same in other words: a model expands the question and each text into weighted tokens (sparse vectors)',
  dense:
    'Texts that say the same in other words: a model turns the question and each text into a vector, and the nearest texts are found (dense vectors)',
  hybrid: 'All of these lists, combined by their scores: usually better than any one of them',
};

/** The inference endpoint that makes a sparse and a dense vector of each passage. */
export const HYBRID_ENDPOINT = '.hybrid';

/** Most fields that are searched by words at once. */
const MOST_FIELDS = 20;

/** The fields of a mapping with their full names; of other forms of a field, those by meaning and the words of a keyword. */
export function leaves(properties: Properties | undefined, prefix = ''): Field[] {
  return Object.entries(properties ?? {}).flatMap(([name, property]) => [
    ...(property.type !== undefined && !['object', 'nested'].includes(property.type)
      ? [{ name: prefix + name, type: property.type, property }]
      : []),
    ...leaves(property.properties, `${prefix}${name}.`),
    ...Object.entries(property.fields ?? {})
      .filter(([, { type }]) => type === 'semantic_text' || (type === 'text' && property.type === 'keyword'))
      .map(([sub, inner]) => ({ name: `${prefix}${name}.${sub}`, type: inner.type ?? '', property: inner })),
  ]);
}

/** The vectors that a field of type `semantic_text` holds, as its first document or else its endpoint says. */
export function vectorsOf(property: Property, tasks: ReadonlyMap<string, string>): readonly ('meaning' | 'dense')[] {
  const id = property.inference_id ?? '';
  switch (property.model_settings?.task_type ?? tasks.get(id)) {
    case 'hybrid_embedding':
      return ['meaning', 'dense'];
    case 'text_embedding':
      return ['dense'];
    case undefined:
      // The key may not see endpoints: only the name is left.
      if (id === HYBRID_ENDPOINT) return ['meaning', 'dense'];
      return /minilm|e5|dense|embedding/i.test(id) ? ['dense'] : ['meaning'];
    default:
      return ['meaning'];
  }
}

/**
 * All ways to search an index with these fields, in the order of the columns; of several fields for one kind each is a way.
 *
 * @param tasks the task types of inference endpoints by their ids
 */
export function waysOf(fields: readonly Field[], tasks: ReadonlyMap<string, string> = new Map()): Way[] {
  const texts = fields.filter(({ type }) => BY_WORDS.includes(type)).map(({ name }) => name);
  const words: Way[] = texts.length === 0 ? [] : [{ kind: 'words', type: 'text', fields: texts.slice(0, MOST_FIELDS) }];
  const semantic = fields.flatMap(({ name, type, property }): Way[] => {
    if (type === 'semantic_text') {
      const kinds = vectorsOf(property, tasks);
      return kinds.map((kind) => ({ kind, type: kinds.length > 1 ? 'hybrid_text' : type, fields: [name] }));
    }
    if (type === 'sparse_vector' || type === 'rank_features') return [{ kind: 'meaning', type, fields: [name] }];
    return type === 'dense_vector' ? [{ kind: 'dense', type, fields: [name] }] : [];
  });
  const plain = [
    ...words,
    ...semantic.filter(({ kind }) => kind === 'meaning'),
    ...semantic.filter(({ kind }) => kind === 'dense'),
  ];
  const kinds = new Set(plain.map(({ kind }) => kind));
  return kinds.size > 1 ? [...plain, { kind: 'hybrid', type: 'fused', fields: [] }] : plain;
}

/** The first way of each kind. */
export function firstOfEach(ways: readonly Way[]): Way[] {
  return KINDS.flatMap((kind) => ways.find((way) => way.kind === kind) ?? []);
}

/** Fields whose passages can be shown. */
export function withPassages(fields: readonly Field[]): string[] {
  return fields.filter(({ type }) => BY_WORDS.includes(type) || type === 'semantic_text').map(({ name }) => name);
}

/** Fields that hold vectors: nobody reads those in a hit. */
export function vectorFields(fields: readonly Field[]): string[] {
  return fields
    .filter(({ type }) => ['sparse_vector', 'rank_features', 'dense_vector'].includes(type))
    .map(({ name }) => name);
}
