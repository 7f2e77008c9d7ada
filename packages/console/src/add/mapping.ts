// The index that data is put into: the texts are searched by words as they are, and copied into a field that models fill.
import { HYBRID_ENDPOINT } from '../search/fields';

export const MEANING_FIELD = 'meaning';

export interface Wish {
  /** Columns that are searched by meaning and by words. */
  readonly meaning: readonly string[];
  /** Whether they are found by dense vectors as well. */
  readonly dense: boolean;
  /** Columns that are only filtered by. */
  readonly keywords?: readonly string[];
}

export function mappingFor({ meaning, dense, keywords = [] }: Wish): object {
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
