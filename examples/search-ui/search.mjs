// What the page asks for, over an index of the engine: completion, hits with facets, and why a hit was found.

/** Hits that are shown, and of which the facets are counted. */
const SHOWN = 10;
const SUGGESTED = 5;
/** Characters of a text in which passages are marked. */
const MOST_ANALYZED = 500_000;

/** Letters of a word by which it is completed. */
const LONGEST_BEGINNING = 15;

/** Settings of the index: how titles are cut into the beginnings of their words, and what is typed into words. */
export const SETTINGS = {
  analysis: {
    filter: {
      beginnings: { type: 'edge_ngram', min_gram: 1, max_gram: LONGEST_BEGINNING },
      shortened: { type: 'truncate', length: LONGEST_BEGINNING },
    },
    analyzer: {
      beginnings: { tokenizer: 'standard', filter: ['lowercase', 'beginnings'] },
      typed: { tokenizer: 'standard', filter: ['lowercase', 'shortened'] },
    },
  },
};
export const TITLE = {
  type: 'text',
  fields: { typed: { type: 'text', analyzer: 'beginnings', search_analyzer: 'typed' } },
};
const PROPERTIES = {
  title: TITLE,
  topic: { type: 'keyword' },
  text: { type: 'text', fields: { semantic: { type: 'semantic_text', inference_id: '.hybrid' } } },
};

/** Titles with words that begin as those that are typed. */
export async function complete(index, typed) {
  if (typed === '') return [];
  const query = { match: { 'title.typed': { query: typed, operator: 'and' } } };
  const { hits } = await index.search({ query, size: SUGGESTED, _source: ['title'] });
  return hits.hits.map(({ _source }) => _source.title);
}

/**
 * @param {import('@sparrow-search/engine').Sparrow} sparrow
 * @param {readonly { title: string, topic: string, text: string }[]} articles written when there is no index yet
 */
export async function openArticles(sparrow, articles) {
  const index = sparrow.index('articles');
  if (await index.ensure({ settings: SETTINGS, mappings: { properties: PROPERTIES } })) {
    await index.bulk(articles, { refresh: true });
  }

  const suggest = (typed) => complete(index, typed);

  /** The best hits for a question by words, sparse and dense vectors; of one topic only, where one is chosen. */
  const search = async (question, topic) => {
    const ask = (filter) => index.search(request(question, filter));
    const all = await ask(undefined);
    const chosen = topic === '' ? all : await ask({ term: { topic } });
    // Facets are counted in the best hits of all topics: a search by meaning finds nearly everything, and who has chosen one topic
    // may want another.
    const topics = new Map();
    for (const { _source } of all.hits.hits) topics.set(_source.topic, (topics.get(_source.topic) ?? 0) + 1);
    return {
      hits: chosen.hits.hits.map(({ _id, _source, highlight }) => ({
        id: _id,
        ..._source,
        // The passage with the words of the question, or else the one that means what is asked.
        passage: highlight?.text?.[0] ?? highlight?.['text.semantic']?.[0] ?? _source.text,
      })),
      topics: [...topics].map(([name, count]) => ({ name, count })).sort((a, b) => b.count - a.count),
    };
  };

  /** The parts of a hit's score, in each list that it was found by. */
  const why = async (question, id) => {
    const lists = {
      words: { multi_match: { query: question, fields: ['title', 'text'] } },
      sparse: { sparse_vector: { field: 'text.semantic', query: question } },
    };
    return Promise.all(
      Object.entries(lists).map(async ([list, query]) => ({
        list,
        ...(await sparrow.execute('explain', { path: { index: 'articles', id }, body: { query } })),
      })),
    );
  };
  return { suggest, search, why };
}

function request(query, filter) {
  return {
    size: SHOWN,
    retriever: { linear: { query, fields: ['title', 'text', 'text.semantic'], ...(filter && { filter }) } },
    highlight: {
      max_analyzed_offset: MOST_ANALYZED,
      fields: { text: { number_of_fragments: 1 }, 'text.semantic': { number_of_fragments: 1 } },
    },
  };
}
