'use strict';
// What the console asks the server: mappings in, bodies of searches out. Nothing here touches the page, so that a test can
// send every body to a real server.

const HITS = 10;
/** Field types that are searched by meaning, the best first, and the kind of model each needs the searcher to name. */
const BY_MEANING = {
  semantic_text: null,
  sparse_vector: 'text_expansion',
  rank_features: 'text_expansion',
  dense_vector: 'text_embedding',
};
const DEFAULT_MODELS = { text_expansion: '.sparse_encoder_model_2', text_embedding: '.all-minilm-l6-v2' };
/** Most fields whose passages are shown. */
const HIGHLIGHTED = 8;

/** The fields of a mapping with their full names: `[name, type]`. */
function leaves(properties, prefix = '') {
  return Object.entries(properties ?? {}).flatMap(([name, field]) => [
    ...(field.type && !['object', 'nested'].includes(field.type) ? [[prefix + name, field.type]] : []),
    ...leaves(field.properties, `${prefix}${name}.`),
  ]);
}

/** The ways to search an index with these fields, the best first: `{id, label, type, field?, fields?}`. */
function waysToSearch(fields) {
  const texts = fields.filter(([, type]) => type === 'text').map(([name]) => name);
  const meanings = Object.keys(BY_MEANING).flatMap((wanted) =>
    fields
      .filter(([, type]) => type === wanted)
      .map(([field, type]) => ({ id: `meaning:${field}`, label: `meaning: ${field}`, type, field })),
  );
  const words = texts.map((field) => ({
    id: `words:${field}`,
    label: `words: ${field}`,
    type: 'text',
    fields: [field],
  }));
  if (texts.length > 1) words.unshift({ id: 'words', label: 'words: all text fields', type: 'text', fields: texts });
  const [best] = meanings;
  const fused =
    best && words.length > 0
      ? [{ id: 'fused', label: 'words and meaning, fused', type: best.type, meaning: best, words: words[0] }]
      : [];
  return [...meanings, ...fused, ...words];
}

/** The kind of model that a way needs to be told, or null. */
function modelKind(way) {
  return BY_MEANING[way.type] ?? null;
}

function queryOf(way, text, model) {
  const { field, fields } = way;
  switch (way.type) {
    case 'semantic_text':
      return { semantic: { field, query: text } };
    case 'sparse_vector':
      return { sparse_vector: { field, inference_id: model, query: text } };
    case 'rank_features':
      return { text_expansion: { [field]: { model_id: model, model_text: text } } };
    case 'dense_vector':
      return {
        knn: { field, k: 100, query_vector_builder: { text_embedding: { model_id: model, model_text: text } } },
      };
    default:
      return fields.length === 1 ? { match: { [fields[0]]: text } } : { multi_match: { query: text, fields } };
  }
}

/** The body of a search. `marked` names the fields whose passages are shown. */
function searchBody(way, text, { model, marked = [], from = 0, explain = false, profile = false } = {}) {
  const standard = (part) => ({ standard: { query: queryOf(part, text, model) } });
  const what = way.meaning
    ? { retriever: { rrf: { retrievers: [standard(way.words), standard(way.meaning)] } } }
    : { query: queryOf(way, text, model) };
  const fields = Object.fromEntries(marked.slice(0, HIGHLIGHTED).map((name) => [name, { number_of_fragments: 2 }]));
  return {
    ...what,
    size: HITS,
    ...(from > 0 ? { from } : {}),
    ...(marked.length > 0 ? { highlight: { fields } } : {}),
    ...(explain ? { explain } : {}),
    ...(profile ? { profile } : {}),
  };
}

/** The models of each kind, from `GET /_ml/trained_models`; those that come with the server if there are none. */
function modelsByKind(configs) {
  return Object.fromEntries(
    Object.entries(DEFAULT_MODELS).map(([kind, usual]) => {
      const ids = configs.filter(({ inference_config: is }) => is && kind in is).map(({ model_id: id }) => id);
      return [kind, [...new Set([...(ids.includes(usual) || ids.length === 0 ? [usual] : []), ...ids])]];
    }),
  );
}
