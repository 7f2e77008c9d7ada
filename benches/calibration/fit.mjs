// node benches/calibration/fit.mjs LISTS-DIR [--json FILE] [--sparse-only RECORD]
//
// With --sparse-only, the maps of words and of dense vectors stay those of an earlier record: what is reported is of these three.
//
// Fits the maps of `"normalizer": "calibrated"` to what collect.mjs has found: for words, and for each of the embedded models, a
// line from a feature of the score to the log-odds of relevance (Platt scaling). Half of the questions, by their ids, are
// fitted to; what is reported is of the other half, and of collections that were left out altogether. Half of the weight of
// each collection is that of questions that belong to another: nothing answers them there.
import { readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';

import { logisticFit, ndcg } from '@sparrow-search/server';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { json: { type: 'string' }, 'sparse-only': { type: 'string' } },
});
const [directory] = positionals;
if (!directory) {
  console.error('usage: node benches/calibration/fit.mjs LISTS-DIR [--json FILE] [--sparse-only RECORD]');
  process.exit(2);
}

/** Lists of the short form, with their weights there. */
const WEIGHTS = { words: 1, sparse: 1, dense: 1.5 };
const LISTS = Object.keys(WEIGHTS);
/** The forms in which words are searched: all are fitted to. */
const WORDS = { words: ['body'], english: ['body.english'], fields: ['title', 'text'] };
const BINS = 10;

const sum = (numbers) => numbers.reduce((total, number) => total + number, 0);
const mean = (numbers) => (numbers.length === 0 ? null : sum(numbers) / numbers.length);
const round = (number, digits = 3) => (number === null ? null : Number(number.toFixed(digits)));
const logistic = (x) => 1 / (1 + Math.exp(-x));

/** BM25's bound for a word that `holding` of `docs` documents have. */
const bound = (holding, docs) => 2.2 * Math.log(1 + (docs - holding + 0.5) / (holding + 0.5));

/** As `Snapshot::unit_of_words`. */
function unitOfWords(terms, fields) {
  const of = fields.map((field) => {
    const { docs, terms: words } = terms[field];
    if (!words.some(([, holding]) => holding > 0)) return 0;
    return Math.sqrt(sum(words.map(([times, holding]) => times * bound(holding, docs))) * bound(0, docs));
  });
  return Math.max(...of);
}

/** A question with its lists, scores replaced by what the maps read. */
function read(line) {
  const row = JSON.parse(line);
  const lists = { ...row.lists };
  for (const [form, fields] of Object.entries(WORDS)) {
    const unit = unitOfWords(row.terms, fields);
    lists[form] = lists[form].map(([id, score]) => [id, unit === 0 ? 0 : score / unit]);
  }
  const length = Math.sqrt(sum(row.weights.map((weight) => weight ** 2)));
  lists.sparse = lists.sparse.map(([id, score]) => [id, score / length]);
  lists.dense = lists.dense.map(([id, score]) => [id, 2 * score - 1]);
  let hash = 0;
  for (const letter of row.id) hash = (hash * 31 + letter.charCodeAt(0)) % 1000003;
  const relevant = new Set(row.relevant);
  return { ...row, raw: row.lists, lists, relevant, own: relevant.size > 0, fitted: hash % 2 === 0 };
}

const questions = readdirSync(directory)
  .filter((file) => file.endsWith('.jsonl'))
  .flatMap((file) => readFileSync(join(directory, file), 'utf8').trim().split('\n').map(read));
/** Weights that make each task, and the foreign questions of its collection, count the same. */
function balanced(asked) {
  const groups = new Map();
  const key = (question) => `${question.corpus} ${question.own ? question.task : 'foreign'}`;
  for (const question of asked) groups.set(key(question), (groups.get(key(question)) ?? 0) + 1);
  const tasks = (corpus) =>
    [...groups.keys()].filter((name) => name.startsWith(corpus) && !name.endsWith('foreign')).length;
  return asked.map((question) => (question.own ? 1 : tasks(question.corpus)) / groups.get(key(question)));
}

/** Slope and intercept of a logistic regression. */
function regression(points) {
  const { slope, intercept } = logisticFit(points);
  return { slope: round(slope), intercept: round(intercept) };
}

/** The maps of words, sparse and dense vectors, fitted to the first hit of each question by reciprocal rank fusion. */
function fit(asked) {
  const weights = balanced(asked);
  const first = asked.map((question) => rrf(question)[0]?.[0]);
  const points = (form) =>
    asked.map((question, at) => {
      const hit = question.lists[form].find(([id]) => id === first[at]);
      return [hit?.[1] ?? 0, question.relevant.has(first[at]) ? 1 : 0, weights[at]];
    });
  return {
    words: regression(Object.keys(WORDS).flatMap(points)),
    sparse: regression(points('sparse')),
    dense: regression(points('dense')),
  };
}

/** All documents of a question's lists, best first, by how their features are fused. */
function ranked(question, lists, score) {
  const found = new Map();
  for (const list of lists) {
    for (const [id, x] of question.lists[list]) found.set(id, { ...found.get(id), [list]: x });
  }
  return [...found].map(([id, features]) => [id, score(features)]).sort((a, b) => b[1] - a[1]);
}

/** As the server fuses: the weighted mean of the probabilities; a list without a document counts as one with the feature 0. */
const calibrated =
  (maps, lists = LISTS) =>
  (question) =>
    ranked(question, lists, (features) => {
      const odds = (list) => maps[list].slope * (features[list] ?? 0) + maps[list].intercept;
      const total = sum(lists.map((list) => WEIGHTS[list]));
      return sum(lists.map((list) => WEIGHTS[list] * logistic(odds(list)))) / total;
    });
/** The same, with the mean of the log-odds. */
const pooled = (maps) => (question) =>
  ranked(question, LISTS, (features) => {
    const odds = (list) => maps[list].slope * (features[list] ?? 0) + maps[list].intercept;
    const total = sum(Object.values(WEIGHTS));
    return logistic(sum(LISTS.map((list) => WEIGHTS[list] * odds(list))) / total);
  });

const normalizers = {
  minmax: (scores) => {
    const [least, most] = [Math.min(...scores), Math.max(...scores)];
    return (score) => (most - least < 1e-6 ? score : (score - least) / (most - least));
  },
  zscore: (scores) => {
    const center = mean(scores);
    const deviation = Math.sqrt(mean(scores.map((score) => (score - center) ** 2)));
    return (score) => Math.max(0, deviation < 1e-6 ? 1 : (score - center) / deviation);
  },
  none: () => (score) => score,
};
/** A sum of normalized scores, and fusion of ranks. */
const linear = (normalizer) => (question) => {
  const found = new Map();
  for (const list of LISTS) {
    const hits = question.raw[list];
    if (hits.length === 0) continue;
    const normalize = normalizers[normalizer](hits.map(([, score]) => score));
    for (const [id, score] of hits) found.set(id, (found.get(id) ?? 0) + WEIGHTS[list] * normalize(score));
  }
  return [...found].sort((a, b) => b[1] - a[1]);
};
const rrf = (question) => {
  const found = new Map();
  for (const list of LISTS) {
    question.raw[list].forEach(([id], at) => found.set(id, (found.get(id) ?? 0) + WEIGHTS[list] / (6 + at)));
  }
  return [...found].sort((a, b) => b[1] - a[1]);
};

/** The probability that a positive is above a negative. */
function auc(points) {
  const sorted = [...points].sort((a, b) => a[0] - b[0]);
  let [below, area, positives, negatives] = [0, 0, 0, 0];
  for (let at = 0; at < sorted.length;) {
    let [ones, zeros] = [0, 0];
    const [value] = sorted[at];
    for (; at < sorted.length && sorted[at][0] === value; at += 1) {
      if (sorted[at][1]) ones += sorted[at][2];
      else zeros += sorted[at][2];
    }
    area += ones * (below + zeros / 2);
    below += zeros;
    positives += ones;
    negatives += zeros;
  }
  return area / (positives * negatives);
}

/** How well the score of the first hit tells whether it is relevant, and whether the question belongs to the collection. */
function telling(asked, search) {
  const weights = balanced(asked);
  const first = asked.map((question) => search(question)[0] ?? ['', 0]);
  const relevant = asked.map((question, at) => [first[at][1], question.relevant.has(first[at][0]), weights[at]]);
  const own = asked.map((question, at) => [first[at][1], question.own, weights[at]]);
  return { relevant: round(auc(relevant)), own: round(auc(own)) };
}

function quality(asked, search) {
  const own = asked.filter((question) => question.own);
  const tasks = [...new Set(own.map(({ task }) => task))];
  const of = (question) =>
    ndcg(
      search(question).map(([id]) => id),
      new Map([...question.relevant].map((id) => [id, 1])),
    );
  return Object.fromEntries(
    tasks.map((task) => [task, round(mean(own.filter((question) => question.task === task).map(of)))]),
  );
}

/** What is observed of first hits, by the probability that was predicted. */
function reliability(asked, search) {
  const weights = balanced(asked);
  const bins = Array.from({ length: BINS }, (_, at) => ({
    from: at / BINS,
    weight: 0,
    questions: 0,
    predicted: 0,
    relevant: 0,
    own: 0,
  }));
  let squares = 0;
  asked.forEach((question, at) => {
    const [id, p] = search(question)[0] ?? ['', 0];
    const bin = bins[Math.min(BINS - 1, Math.floor(p * BINS))];
    const isRelevant = question.relevant.has(id) ? 1 : 0;
    bin.questions += 1;
    bin.weight += weights[at];
    bin.predicted += weights[at] * p;
    bin.relevant += weights[at] * isRelevant;
    if (question.own) bin.own += weights[at];
    squares += weights[at] * (p - isRelevant) ** 2;
  });
  const total = sum(weights);
  const error = sum(bins.map((bin) => Math.abs(bin.predicted - bin.relevant))) / total;
  const table = bins.map(({ from, weight, questions: count, predicted, relevant, own }) => ({
    from,
    questions: count,
    predicted: weight > 0 ? round(predicted / weight) : null,
    relevant: weight > 0 ? round(relevant / weight) : null,
    ofCollection: weight > 0 ? round(own / weight) : null,
  }));
  return { brier: round(squares / total), calibrationError: round(error), table };
}

/** What a `min_score` leaves: of questions that belong elsewhere, and of those whose answer was among the first ten. */
function thresholds(asked, search) {
  const lists = asked.map((question) => ({ question, hits: search(question).slice(0, 10) }));
  const foreign = lists.filter(({ question }) => !question.own);
  const found = lists.filter(({ question, hits }) => hits.some(([id]) => question.relevant.has(id)));
  return [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8].map((least) => ({
    least,
    foreignEmpty: round(mean(foreign.map(({ hits }) => ((hits[0]?.[1] ?? 0) < least ? 1 : 0)))),
    answerKept: round(
      mean(
        found.map(({ question, hits }) => (hits.some(([id, p]) => p >= least && question.relevant.has(id)) ? 1 : 0)),
      ),
    ),
  }));
}

const fitted = questions.filter((question) => question.fitted);
const heldOut = questions.filter((question) => !question.fitted);
const all = fit(fitted);
const before = values['sparse-only'] && JSON.parse(readFileSync(values['sparse-only'], 'utf8')).maps;
const maps = before ? { ...before, sparse: all.sparse } : all;
console.log(`${fitted.length} questions fitted to, ${heldOut.length} held out`);
console.table(maps);

/** How well the score of a list's first hit tells whether it is relevant, by what it is divided by. */
function features(asked) {
  const terms = (question) =>
    question.terms.body.terms.map(([times, holding]) => [times, bound(holding, question.terms.body.docs)]);
  const divisors = {
    'words: as they are': ['words', () => 1],
    'words: by what all words could reach': [
      'words',
      (question) => sum(terms(question).map(([times, most]) => times * most)),
    ],
    'words: by the unit of words': ['words', (question) => unitOfWords(question.terms, ['body'])],
    'sparse: as they are': ['sparse', () => 1],
    'sparse: by the sum of the question’s weights': ['sparse', (question) => sum(question.weights)],
    'sparse: by the sum of their squares': ['sparse', (question) => sum(question.weights.map((weight) => weight ** 2))],
    'sparse: by the length of the question’s vector': [
      'sparse',
      (question) => Math.sqrt(sum(question.weights.map((weight) => weight ** 2))),
    ],
    'dense: as they are': ['dense', () => 1],
  };
  const weights = balanced(asked);
  const of = ([list, divisor]) =>
    auc(
      asked.map((question, at) => {
        const [id, score] = question.raw[list][0] ?? ['', 0];
        return [score / (divisor(question) || 1), question.relevant.has(id), weights[at]];
      }),
    );
  return Object.fromEntries(Object.entries(divisors).map(([name, way]) => [name, round(of(way))]));
}

const single = (list) => (question) => question.raw[list];
const ways = {
  calibrated: calibrated(maps),
  'mean of log-odds': pooled(maps),
  zscore: linear('zscore'),
  minmax: linear('minmax'),
  none: linear('none'),
  rrf,
  'words alone': single('words'),
  'sparse alone': single('sparse'),
  'dense alone': single('dense'),
  'words alone, calibrated': calibrated(maps, ['words']),
  'sparse alone, calibrated': calibrated(maps, ['sparse']),
  'dense alone, calibrated': calibrated(maps, ['dense']),
};
const compared = Object.fromEntries(
  Object.entries(ways).map(([name, search]) => [name, { ...telling(heldOut, search), ...quality(heldOut, search) }]),
);
console.table(compared);
const divided = features(heldOut);
console.table(divided);
const probabilities = Object.keys(ways).filter((name) => /calibrated|log-odds/.test(name));
const reliabilities = Object.fromEntries(probabilities.map((name) => [name, reliability(heldOut, ways[name])]));
for (const name of probabilities) {
  console.log(name, 'Brier', reliabilities[name].brier, 'calibration error', reliabilities[name].calibrationError);
  console.table(reliabilities[name].table);
}
const corpora = [...new Set(questions.map((question) => question.corpus))];
const leaving = { all: thresholds(heldOut, ways.calibrated) };
for (const corpus of corpora) {
  leaving[corpus] = thresholds(
    heldOut.filter((question) => question.corpus === corpus),
    ways.calibrated,
  );
}
for (const [name, table] of Object.entries(leaving)) {
  console.log(name);
  console.table(table);
}

const transfer = {};
for (const corpus of corpora) {
  const others = fit(questions.filter((question) => question.corpus !== corpus));
  const left = questions.filter((question) => question.corpus === corpus);
  const { brier, calibrationError } = reliability(left, calibrated(others));
  const at = thresholds(left, calibrated(others)).find(({ least }) => least === 0.5);
  transfer[corpus] = { ...telling(left, calibrated(others)), brier, calibrationError, ...at };
}
console.log('fitted without the collection');
console.table(transfer);

if (values.json) {
  const record = {
    command: `node benches/calibration/fit.mjs LISTS-DIR --json FILE${before ? ' --sparse-only RECORD' : ''}, on lists of benches/calibration/collect.mjs`,
    fitted: fitted.length,
    heldOut: heldOut.length,
    maps,
    ...(before && { fittedTogether: all }),
    compared,
    features: divided,
    reliabilities,
    thresholds: leaving,
    withoutCollection: transfer,
  };
  writeFileSync(values.json, `${JSON.stringify(record, null, 2)}\n`);
}
