// node benches/fusions/compare.mjs LISTS-DIR [--json FILE]
//
// Fusions of the lists that lists.mjs has made, by nDCG@10: each of the lists alone, reciprocal rank fusion by constant
// and weights, sums of normalized scores by weights. Nothing is fitted: what is best on average over the collections
// (WordNet's three tasks count as one), with either analyzer, is the default of the server.
import { readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { parseArgs } from 'node:util';

import { ndcg } from '@sparrow-search/server';

const WINDOW = 100;
const ANALYZERS = ['standard', 'english'];
const WEIGHTS = [0, 0.5, 0.7, 1].flatMap((sparse) => [0, 1, 1.5, 2].map((dense) => [1, sparse, dense])).slice(1);
const SHOWN = 12;

const { values, positionals } = parseArgs({ allowPositionals: true, options: { json: { type: 'string' } } });
const [directory] = positionals;
if (!directory) {
  console.error('usage: node benches/fusions/compare.mjs LISTS-DIR [--json FILE]');
  process.exit(2);
}
const collections = readdirSync(directory)
  .filter((file) => file.endsWith('.json'))
  .sort()
  .map((file) => {
    const queries = JSON.parse(readFileSync(join(directory, file), 'utf8'));
    for (const query of queries) query.grades = new Map(Object.entries(query.grades));
    return { name: basename(file, '.json'), queries };
  });

const ranked = (scores) => [...scores].sort((a, b) => b[1] - a[1]).map(([id]) => id);
const add = (scores, id, score) => scores.set(id, (scores.get(id) ?? 0) + score);
const lists = (query, analyzer) => [query.lists[analyzer], query.lists.sparse, query.lists.dense];

const NORMALIZERS = {
  minmax: (scores) => {
    const [least, most] = [Math.min(...scores), Math.max(...scores)];
    return (score) => (most - least < 1e-6 ? score : (score - least) / (most - least));
  },
  zscore: (scores) => {
    const mean = scores.reduce((sum, score) => sum + score, 0) / scores.length;
    const deviation = Math.sqrt(scores.reduce((sum, score) => sum + (score - mean) ** 2, 0) / scores.length);
    return (score) => Math.max(0, deviation < 1e-6 ? 1 : (score - mean) / deviation);
  },
  l2_norm: (scores) => {
    const norm = Math.sqrt(scores.reduce((sum, score) => sum + score ** 2, 0));
    return (score) => (norm < 1e-6 ? 0 : score / norm);
  },
  none: () => (score) => score,
};

const rrf = (constant, weights) => (query, analyzer) => {
  const scores = new Map();
  lists(query, analyzer).forEach((list, number) => {
    if (weights[number] === 0) return;
    list.slice(0, WINDOW).forEach(([id], rank) => add(scores, id, weights[number] / (constant + rank + 1)));
  });
  return ranked(scores);
};

const linear = (normalizer, weights) => (query, analyzer) => {
  const scores = new Map();
  lists(query, analyzer).forEach((list, number) => {
    const first = list.slice(0, WINDOW);
    if (weights[number] === 0 || first.length === 0) return;
    const normalize = NORMALIZERS[normalizer](first.map(([, score]) => score));
    for (const [id, score] of first) add(scores, id, weights[number] * normalize(score));
  });
  return ranked(scores);
};

/** nDCG@10 of each collection. */
const measured = (search, analyzer) =>
  Object.fromEntries(
    collections.map(({ name, queries }) => {
      const sum = queries.reduce((total, query) => total + ndcg(search(query, analyzer), query.grades), 0);
      return [name, Number((sum / queries.length).toFixed(4))];
    }),
  );

/** The mean of what `of` gives for each collection, where those of one name before the dash count as one. */
function mean(of) {
  const groups = new Map();
  for (const { name } of collections) {
    const group = name.split('-')[0];
    groups.set(group, [...(groups.get(group) ?? []), of(name)]);
  }
  const average = (numbers) => numbers.reduce((sum, number) => sum + number, 0) / numbers.length;
  return average([...groups.values()].map(average));
}

const only = (number) => (query, analyzer) => lists(query, analyzer)[number].map(([id]) => id);
const parts = Object.fromEntries(
  ANALYZERS.map((analyzer) => [
    analyzer,
    { words: measured(only(0), analyzer), sparse: measured(only(1), analyzer), dense: measured(only(2), analyzer) },
  ]),
);

/** What the server itself made of the lists, and of sparse and dense scores in one clause. */
const OWN = ['rrf', 'linear', 'calibrated'];
const server = Object.fromEntries(
  ANALYZERS.map((analyzer) => {
    const own = (name) => measured((query) => query.lists[name].map(([id]) => id), analyzer);
    const ways = OWN.map((fusion) => [fusion, own(`${fusion}, ${analyzer}`)]);
    return [analyzer, { ...Object.fromEntries(ways), semantic: own('semantic') }];
  }),
);

const candidates = [
  ...[2, 5, 10, 20, 30, 60].flatMap((constant) =>
    WEIGHTS.map((weights) => ({ name: `rrf ${constant}, ${weights.join('/')}`, search: rrf(constant, weights) })),
  ),
  // Without the list of documents that have all words.
  ...['minmax', 'zscore', 'l2_norm'].flatMap((normalizer) =>
    WEIGHTS.map((weights) => ({ name: `${normalizer}, ${weights.join('/')}`, search: linear(normalizer, weights) })),
  ),
  // One clause over both kinds of vectors adds their scores.
  ...[10, 20, 40, 60, 80, 100, 120].map((dense) => ({
    name: `sparse + ${dense} dense`,
    search: linear('none', [0, 1, dense]),
  })),
];
const table = candidates.map(({ name, search }) => {
  const row = { fusion: name };
  let [overWords, overBest] = [0, 0];
  for (const analyzer of ANALYZERS) {
    const found = measured(search, analyzer);
    row[analyzer] = found;
    const best = (collection) => Math.max(...Object.values(parts[analyzer]).map((part) => part[collection]));
    overWords += mean((collection) => found[collection] / parts[analyzer].words[collection] - 1);
    overBest += mean((collection) => found[collection] / best(collection) - 1);
  }
  const percent = (share) => Number(((100 * share) / ANALYZERS.length).toFixed(1));
  return { ...row, 'over words, %': percent(overWords), 'over the best part, %': percent(overBest) };
});
table.sort((a, b) => b['over the best part, %'] - a['over the best part, %']);

console.log('words by the standard and the English analyzer, sparse, dense');
console.table(parts.standard);
console.table(parts.english);
console.log('the server, with words by the standard and the English analyzer');
console.table(server.standard);
console.table(server.english);
for (const kind of ['rrf', 'zscore', 'minmax', 'l2_norm', 'sparse +']) {
  const rows = table.filter((row) => row.fusion.startsWith(kind)).slice(0, SHOWN);
  console.table(
    rows.map((row) => {
      const shown = { ...row, ...row.english };
      delete shown.standard;
      delete shown.english;
      return shown;
    }),
  );
}
if (values.json) {
  const command = 'node benches/fusions/compare.mjs LISTS-DIR --json FILE, on lists of benches/fusions/lists.mjs';
  writeFileSync(values.json, `${JSON.stringify({ command, window: WINDOW, parts, server, table }, null, 2)}\n`);
}
