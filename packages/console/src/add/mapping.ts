// The index that data is put into: the texts are searched by words as they are, and copied into a field that a model fills.

export const MEANING_FIELD = 'meaning';
export const DENSE_FIELD = 'meaning_dense';
const DENSE_ENDPOINT = '.all-minilm-l6-v2-elasticsearch';

export interface Wish {
  /** Columns that are searched by meaning and by words. */
  readonly meaning: readonly string[];
  /** Whether they are found by dense vectors as well. */
  readonly dense: boolean;
  /** Columns that are only filtered by. */
  readonly keywords?: readonly string[];
}

export function mappingFor({ meaning, dense, keywords = [] }: Wish): object {
  const copies = [MEANING_FIELD, ...(dense ? [DENSE_FIELD] : [])];
  const text = { type: 'text', copy_to: copies };
  return {
    mappings: {
      properties: {
        ...Object.fromEntries(keywords.map((name) => [name, { type: 'keyword' }])),
        ...Object.fromEntries(meaning.map((name) => [name, text])),
        ...(meaning.length === 0 ? {} : { [MEANING_FIELD]: { type: 'semantic_text' } }),
        ...(meaning.length > 0 && dense
          ? { [DENSE_FIELD]: { type: 'semantic_text', inference_id: DENSE_ENDPOINT } }
          : {}),
      },
    },
  };
}
