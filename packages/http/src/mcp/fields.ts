import { type Leaf, type Properties, leaves } from '@sparrow-search/endpoints';
import { SparrowError } from '@sparrow-search/engine';
import { BY_WORDS, near } from '@sparrow-search/engine/diagnostics';

import { type RestInterface, ToolError, pathOf } from './rest-interface.js';

/** A field of one or more indices. */
export interface Field {
  readonly name: string;
  readonly type: string;
  /** Fields of documents whose texts fill this one, if it is searched by meaning. */
  readonly sources: readonly string[];
}

/** How the values of a field are compared with those of a filter. */
type Comparison = 'value' | 'words';

/** A condition on a field, as a model writes it. */
export type Condition =
  Value | readonly Value[] | { readonly from?: Value | undefined; readonly to?: Value | undefined };
type Value = string | number | boolean;

const TEXTS: ReadonlySet<string> = new Set(BY_WORDS);

/** Types whose values are numbers for machines, of no use to who reads a document. */
const VECTORS: ReadonlySet<string> = new Set(['dense_vector', 'sparse_vector', 'rank_features', 'rank_feature']);

/** Types that can be neither filtered by nor counted by value. */
const WITHOUT_VALUES: ReadonlySet<string> = new Set([
  ...VECTORS,
  'semantic_text',
  'binary',
  'object',
  'nested',
  'alias',
  // Found by a suggester alone.
  'completion',
  // Found by distance or by shape, which a value or a range cannot say.
  'geo_point',
  'geo_shape',
  'point',
  'shape',
]);

/** Names that are told to who named a field that is not there. */
const MOST_NAMED = 20;

interface Mapped {
  readonly mappings: { readonly properties?: Properties };
}

interface Capabilities {
  readonly fields: Readonly<
    Record<string, Readonly<Record<string, { readonly type: string; metadata_field?: boolean }>>>
  >;
}

/** The fields of an index, or of several. */
export class Fields {
  readonly all: readonly Field[];
  /** Whether the mapping could be read: without it, fields that are searched by meaning look like texts. */
  readonly isMapping: boolean;
  readonly #byName: ReadonlyMap<string, Field>;

  private constructor(fields: readonly Field[], isMapping: boolean) {
    this.#byName = new Map(fields.map((field) => [field.name, field]));
    this.all = [...this.#byName.values()];
    this.isMapping = isMapping;
  }

  /** Reads the mapping, or where the key may not see it, what can be searched by. */
  static async of(rest: RestInterface, index: string, signal?: AbortSignal): Promise<Fields> {
    let mapped: Readonly<Record<string, Mapped>>;
    try {
      mapped = await rest.request('GET', pathOf(index, '_mapping'), { signal });
    } catch (error) {
      if (!(error instanceof SparrowError) || error.status !== 403) throw error;
      const query = { fields: '*' };
      const { fields } = await rest.request<Capabilities>('GET', pathOf(index, '_field_caps'), { query, signal });
      return new Fields(capable(fields), false);
    }
    const found = Object.values(mapped).flatMap(({ mappings: { properties = {} } }) => leaves(properties));
    const sourcesOf = sourcesIn(found);
    return new Fields(
      found.map(([name, { type = 'object' }]) => ({ name, type, sources: sourcesOf(name, type) })),
      true,
    );
  }

  get semantic(): readonly Field[] {
    return this.all.filter(({ type }) => type === 'semantic_text');
  }

  get texts(): readonly Field[] {
    return this.all.filter(({ type }) => TEXTS.has(type));
  }

  get vectors(): readonly Field[] {
    return this.all.filter(({ type }) => VECTORS.has(type));
  }

  /** Fields of documents whose texts are shown as passages. */
  get passageSources(): readonly string[] {
    return [...new Set(this.semantic.flatMap(({ sources }) => sources))];
  }

  /** Whether documents can be filtered by a field, and how. */
  filterable({ type }: Field): Comparison | undefined {
    if (WITHOUT_VALUES.has(type)) return undefined;
    return TEXTS.has(type) ? 'words' : 'value';
  }

  /**
   * The clauses that restrict a search as plain pairs say.
   *
   * @throws {ToolError} for a field that is not there or cannot be filtered by, with those that can
   */
  clauses(filters: Readonly<Record<string, Condition>>): object[] {
    return Object.entries(filters).map(([name, condition]) => this.#clause(name, condition));
  }

  #clause(name: string, condition: Condition): object {
    const field = this.#byName.get(name) ?? this.#flattened(name);
    if (field === undefined) throw new ToolError(this.#unknown(name));
    const comparison = this.filterable(field);
    if (comparison === undefined) {
      throw new ToolError(
        `[${name}] is a field of type ${field.type}, which cannot be filtered by. ${this.#those()} Put what the text is about into the query.`,
      );
    }
    if (typeof condition === 'object' && !Array.isArray(condition)) {
      const { from, to } = condition as { readonly from?: Value; readonly to?: Value };
      return {
        range: { [name]: { ...(from === undefined ? {} : { gte: from }), ...(to === undefined ? {} : { lte: to }) } },
      };
    }
    const values = (Array.isArray(condition) ? condition : [condition]) as readonly Value[];
    // A text is filtered by its whole value where that is indexed too, else by all its words.
    const exact = this.#byName.get(`${name}.keyword`)?.type === 'keyword' ? `${name}.keyword` : name;
    if (comparison === 'value' || exact !== name) return { terms: { [exact]: values } };
    const words = values.map((value) => ({ match: { [name]: { query: value, operator: 'and' } } }));
    return { bool: { should: words, minimum_should_match: 1 } };
  }

  /** The keys of a `flattened` field are in no mapping. */
  #flattened(name: string): Field | undefined {
    return this.all.find((field) => field.type === 'flattened' && name.startsWith(`${field.name}.`));
  }

  #unknown(name: string): string {
    const [meant] = near(
      name,
      this.all.map((field) => field.name),
    );
    return `There is no field [${name}]. ${meant === undefined ? this.#those() : `Did you mean [${meant}]?`}`;
  }

  #those(): string {
    const names = this.all.filter((field) => this.filterable(field) !== undefined).map(({ name }) => name);
    if (names.length === 0) return 'There are no fields to filter by.';
    const more = names.length > MOST_NAMED ? ' and others, which describe_index shows' : '';
    return `Fields to filter by are ${names.slice(0, MOST_NAMED).join(', ')}${more}.`;
  }
}

function capable(fields: Capabilities['fields']): Field[] {
  return Object.entries(fields).flatMap(([name, byType]) => {
    const [first] = Object.values(byType);
    if (first === undefined || first.metadata_field === true || first.type === 'object') return [];
    return [{ name, type: first.type, sources: [] }];
  });
}

/** Where the texts of fields come from: from themselves, the field that they are a sub-field of, and those that are copied to them. */
function sourcesIn(all: readonly Leaf[]): (name: string, type: string) => string[] {
  const parents = new Map<string, string>();
  const copied = new Map<string, string[]>();
  for (const [name, { fields = {}, copy_to: to = [] }] of all) {
    for (const part of Object.keys(fields)) parents.set(`${name}.${part}`, name);
    for (const target of [to].flat()) {
      const sources = copied.get(target);
      if (sources === undefined) copied.set(target, [name]);
      else sources.push(name);
    }
  }
  return (name, type) => (type === 'semantic_text' ? [parents.get(name) ?? name, ...(copied.get(name) ?? [])] : []);
}
