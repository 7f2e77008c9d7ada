/** What a script of a context comes to, and what it can ask for. */
interface Context {
  readonly returns: string;
  readonly reads: readonly ('Params' | 'Doc')[];
}

const MAP = 'java.util.Map';

/** Where scripts can stand here, under the names that Elasticsearch has for these places. */
const CONTEXTS: Readonly<Record<string, Context>> = {
  aggregation_selector: { returns: 'boolean', reads: ['Params'] },
  bucket_aggregation: { returns: 'java.lang.Number', reads: ['Params'] },
  field: { returns: 'java.lang.Object', reads: ['Params', 'Doc'] },
  filter: { returns: 'boolean', reads: ['Params', 'Doc'] },
  ingest: { returns: 'void', reads: ['Params'] },
  number_sort: { returns: 'double', reads: ['Params', 'Doc'] },
  processor_conditional: { returns: 'boolean', reads: ['Params'] },
  reindex: { returns: 'void', reads: ['Params'] },
  score: { returns: 'double', reads: ['Params', 'Doc'] },
  string_sort: { returns: 'java.lang.String', reads: ['Params', 'Doc'] },
  template: { returns: 'java.lang.String', reads: ['Params'] },
  terms_set: { returns: 'java.lang.Number', reads: ['Params', 'Doc'] },
  update: { returns: 'void', reads: ['Params'] },
  update_by_query: { returns: 'void', reads: ['Params'] },
};

/** `_script_context` */
export function scriptContexts(): object {
  const contexts = Object.entries(CONTEXTS).map(([name, { returns, reads }]) => ({
    name,
    methods: [
      { name: 'execute', return_type: returns, params: [] },
      ...reads.map((what) => ({ name: `get${what}`, return_type: MAP, params: [] })),
    ],
  }));
  return { contexts };
}

/** `_script_language` */
export function scriptLanguages(): object {
  const scripts = Object.keys(CONTEXTS).filter((name) => name !== 'template');
  return {
    types_allowed: ['inline', 'stored'],
    language_contexts: [
      { language: 'mustache', contexts: ['template'] },
      { language: 'painless', contexts: scripts },
    ],
  };
}
