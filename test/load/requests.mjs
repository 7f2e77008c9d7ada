// What the clients of the load test write and ask: words of a small vocabulary, the frequent ones first.

const WORDS = Array.from({ length: 2000 }, (_, at) => `w${at.toString(36)}`);

function word(random) {
  return WORDS[Math.floor(WORDS.length * random() ** 3)];
}

function words(random, count) {
  return Array.from({ length: count }, () => word(random)).join(' ');
}

/** The body of a bulk request with so many documents. */
export function documents(random, count) {
  return Array.from({ length: count }, () => {
    const document = { text: words(random, 40), tag: word(random), number: Math.floor(random() * 1000) };
    return `{"index":{}}\n${JSON.stringify(document)}\n`;
  }).join('');
}

/** A search: words, a phrase, a filter or an aggregation. */
export function randomSearch(random) {
  const kind = random();
  const query =
    kind < 0.6
      ? { match: { text: words(random, 3) } }
      : kind < 0.8
        ? { match_phrase: { text: words(random, 2) } }
        : { bool: { must: { match: { text: word(random) } }, filter: { range: { number: { lt: 500 } } } } };
  const body = kind < 0.9 ? { query } : { query, size: 0, aggs: { tags: { terms: { field: 'tag.keyword' } } } };
  return { method: 'POST', path: '/load/_search', body: JSON.stringify(body), type: 'application/json' };
}

/**
 * A search that takes a core several milliseconds: its rate, and ten times its rate, are few enough requests that clients on the same
 * machine can send them beside the server.
 */
export function aggregation(random) {
  const body = {
    size: 0,
    query: { range: { number: { gte: Math.floor(random() * 500) } } },
    aggs: {
      tags: {
        terms: { field: 'tag.keyword', size: 50 },
        aggs: { stats: { stats: { field: 'number' } }, percentiles: { percentiles: { field: 'number' } } },
      },
      numbers: {
        histogram: { field: 'number', interval: 50 },
        aggs: { tags: { terms: { field: 'tag.keyword' } } },
      },
    },
  };
  return { method: 'POST', path: '/load/_search', body: JSON.stringify(body), type: 'application/json' };
}
