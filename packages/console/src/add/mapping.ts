// The index that data is put into: the texts are searched by words as they are, and copied into a field that models fill.
import { HYBRID_ENDPOINT, type Properties, type Property, leaves } from '../search/fields';

export const MEANING_FIELD = 'meaning';

export interface Wish {
  /** Columns that are searched by meaning and by words. */
  readonly meaning: readonly string[];
  /** Whether they are found by dense vectors as well. */
  readonly dense: boolean;
  /** Columns that are only filtered by. */
  readonly keywords?: readonly string[];
}

export interface Mapping {
  readonly properties: Properties;
}

export function mappingFor({ meaning, dense, keywords = [] }: Wish): { readonly mappings: Mapping } {
  const text = { type: 'text', copy_to: [MEANING_FIELD] };
  const vectors = { type: 'semantic_text', ...(dense ? { inference_id: HYBRID_ENDPOINT } : {}) };
  return {
    mappings: {
      properties: {
        ...Object.fromEntries(keywords.map((name) => [name, { type: 'keyword' }])),
        ...Object.fromEntries(meaning.map((name) => [name, text])),
        ...(meaning.length === 0 ? {} : { [MEANING_FIELD]: vectors }),
      },
    },
  };
}

/** What an index that is there lacks of a wish: fields that it has stay as they are. */
export function additionsFor(wish: Wish, there: Properties): Mapping {
  const { properties } = mappingFor(wish).mappings;
  return { properties: Object.fromEntries(Object.entries(properties).filter(([name]) => !hasField(there, name))) };
}

export function hasField(there: Properties, name: string): boolean {
  return Object.hasOwn(there, name) || leaves(there).some((field) => field.name === name);
}

/** Whether a column is searched by meaning in an index that is there: by itself, in another form, or through a copy of it. */
export function isByMeaning(there: Properties, name: string): boolean {
  const fields = leaves(there);
  const isSemantic = (other: string): boolean =>
    fields.some(({ name: one, type }) => one === other && type === 'semantic_text');
  const property: Property | undefined =
    (Object.hasOwn(there, name) ? there[name] : undefined) ?? fields.find((field) => field.name === name)?.property;
  const forms = Object.keys(property?.fields ?? {}).map((form) => `${name}.${form}`);
  return [name, ...forms, ...[property?.copy_to ?? []].flat()].some(isSemantic);
}
