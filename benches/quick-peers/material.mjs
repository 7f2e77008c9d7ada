// What is searched: texts and questions, their words, and their vectors as the embedded models give them. Without a folder of data the texts
// are made of WordNet's meanings; a folder of big-ann's sparse track brings vectors alone.
import { existsSync, renameSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';

import { groundTruth } from '../lib/answers.mjs';
import { CsrFile, readGroundTruth, writeCsr } from '../lib/csr.mjs';
import { baseOf } from '../lib/datasets.mjs';
import { copyMatrix } from '../lib/vectors.mjs';
import { readVocabulary } from '../lib/vocabulary.mjs';
import { synsets } from '../lib/wordnet.mjs';

export const DIMS = 384;
const ENDPOINTS = {
  sparse: { task_type: 'sparse_embedding', inference_id: '.elser-2-elasticsearch' },
  dense: { task_type: 'text_embedding', inference_id: '.all-minilm-l6-v2-elasticsearch' },
};
const BATCH = 128;
/** A machine that others use may take long. */
const PATIENT = { timeout: '600s' };
/** Words of a made passage: as many as MS MARCO's have in the mean. */
const PASSAGE_WORDS = 55;

/**
 * A passage for each meaning: its words, its explanation and examples, and the explanations of meanings that it points to, until it is long
 * enough. Meanings are taken from all over the dictionary.
 *
 * @returns {{ id: string, title: string, text: string }[]}
 */
export function wordNetPassages(count) {
  const all = synsets();
  const byId = new Map(all.map((synset) => [synset.id, synset]));
  const step = Math.max(1, all.length / count);
  return Array.from({ length: Math.min(count, all.length) }, (_, index) => {
    const { id, words, gloss, examples, pointers } = all[Math.floor(index * step)];
    const parts = [gloss, ...examples];
    for (const { to } of pointers) {
      const other = byId.get(to);
      if (other === undefined) continue;
      if (parts.join(' ').split(' ').length >= PASSAGE_WORDS) break;
      parts.push(`${other.words.join(', ')}: ${other.gloss}`);
    }
    return { id, title: words.join(', '), text: `${words.join(', ')}: ${parts.join('. ')}.` };
  });
}

/** The words of a text as all engines take them, so that none has to be told how to find them: letters and digits, in lower case. */
export const wordsOf = (text) => text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [];

/**
 * BM25 as a matrix of weights, with k1 1.2 and b 0.75; lengths are kept as Lucene and Sparrow keep them, to four significant bits.
 *
 * @param {string[][]} texts the words of each
 * @param {string[][]} questions the words of each, every one once
 * @returns {{ documents: { idx: number[], val: number[] }[], asked: { idx: number[], val: number[] }[], columns: number }} rows for csr.mjs
 */
export function bm25(texts, questions) {
  const numbers = new Map();
  const counts = texts.map((words) => {
    const counted = new Map();
    for (const word of words) {
      if (!numbers.has(word)) numbers.set(word, numbers.size);
      const number = numbers.get(word);
      counted.set(number, (counted.get(number) ?? 0) + 1);
    }
    return counted;
  });
  const frequency = new Float64Array(numbers.size);
  for (const counted of counts) for (const number of counted.keys()) frequency[number] += 1;
  const filled = texts.filter((words) => words.length > 0).length;
  const mean = texts.reduce((sum, words) => sum + words.length, 0) / filled;
  const [k1, b] = [1.2, 0.75];
  const documents = counts.map((counted, at) => {
    const norm = k1 * (1 - b + (b * keptLength(texts[at].length)) / mean);
    const idx = [...counted.keys()].sort((one, other) => one - other);
    const weight = (number) => {
      const [found, times] = [frequency[number], counted.get(number)];
      return (Math.log(1 + (filled - found + 0.5) / (found + 0.5)) * times) / (times + norm);
    };
    return { idx, val: idx.map(weight) };
  });
  const asked = questions.map((words) => {
    const idx = [...new Set(words)].flatMap((word) => numbers.get(word) ?? []).sort((one, other) => one - other);
    return { idx, val: idx.map(() => 1) };
  });
  return { documents, asked, columns: numbers.size };
}

/** A length as it comes back from one byte: what is above 24 has four significant bits. */
export function keptLength(length) {
  const above = length - 24;
  if (above < 16) return length;
  const dropped = 2 ** (Math.floor(Math.log2(above)) - 3);
  return 24 + Math.floor(above / dropped) * dropped;
}

/**
 * Matrices in files, and the exact answers of the questions.
 *
 * @typedef {{ documents: string, questions: string, rows: number, truth: { prefix: string, ids: Int32Array, scores: Float32Array, depth: number } }} Sparse
 */

/** Two matrices in files of a folder, unless they are there. @returns {Promise<Sparse>} */
async function sparseOf(context, home, name, make) {
  const [documents, questions] = [join(home, `${name}.csr`), join(home, `${name}-questions.csr`)];
  // The questions come last: without them nothing counts as there.
  if (!existsSync(questions)) {
    const made = await make();
    writeCsr(documents, made.documents, made.columns);
    writeCsr(questions, made.asked, made.columns);
  }
  return exact(context, home, documents, questions, CsrFile.rowsOf(documents));
}

async function exact(context, home, documents, questions, rows) {
  const [from, asked] = [documents, questions].map((path) => join(home, `${basename(path, '.csr')}-${rows}`));
  copyMatrix(documents, rows, from);
  copyMatrix(questions, Infinity, asked);
  return { documents, questions, rows, truth: await groundTruth({ ...context, work: home }, from, asked) };
}

/** The vectors of a folder of big-ann's, with the answers that come with them where all rows are taken. @returns {Promise<Sparse>} */
export async function bigAnnVectors(context, home, dataset, count) {
  const base = baseOf(dataset, count);
  const rows = Math.min(count, base.rows);
  if (rows < base.rows || !existsSync(base.truth)) return exact(context, home, base.documents, dataset.asked, rows);
  const truth = { ...readGroundTruth(base.truth), prefix: join(home, 'given') };
  for (const ending of ['ids', 'scores']) {
    writeFileSync(`${truth.prefix}.${ending}`, new Uint8Array(truth[ending].buffer));
  }
  return { documents: base.documents, questions: dataset.asked, rows, truth };
}

/** The vectors of texts as a model gives them. */
async function* encoded({ send }, endpoint, texts) {
  for (let from = 0; from < texts.length; from += BATCH) {
    const answer = await send('infer', endpoint, PATIENT, JSON.stringify({ input: texts.slice(from, from + BATCH) }));
    for (const { embedding } of Object.values(answer)[0]) yield embedding;
  }
}

/** Vectors of texts, whose words are the model's tokens. */
export async function sparseVectors(context, sparrow, home, texts, questions) {
  const columns = new Map(readVocabulary().map((token, column) => [token, column]));
  const rowsOf = async (list) => {
    const rows = [];
    for await (const embedding of encoded(sparrow, ENDPOINTS.sparse, list)) {
      const entries = Object.entries(embedding).map(([token, weight]) => [columns.get(token), weight]);
      entries.sort((one, other) => one[0] - other[0]);
      rows.push({ idx: entries.map(([column]) => column), val: entries.map(([, weight]) => weight) });
    }
    return rows;
  };
  return sparseOf(context, home, 'sparse', async () => ({
    documents: await rowsOf(texts),
    asked: await rowsOf(questions),
    columns: columns.size,
  }));
}

/** Vectors of texts in files of floats. @returns {Promise<{ documents: string, questions: string }>} */
export async function denseVectors(sparrow, home, texts, questions) {
  const write = async (name, list) => {
    const path = join(home, `${name}.f32`);
    if (existsSync(path)) return path;
    const floats = new Float32Array(DIMS * list.length);
    let at = 0;
    for await (const embedding of encoded(sparrow, ENDPOINTS.dense, list)) {
      floats.set(embedding, at);
      at += DIMS;
    }
    writeFileSync(`${path}.tmp`, floats);
    renameSync(`${path}.tmp`, path);
    return path;
  };
  return { documents: await write('dense', texts), questions: await write('dense-questions', questions) };
}

/** Words of texts and questions, in the files that engines read, and BM25's exact answers. */
export async function wordFiles(context, home, texts, questions) {
  const words = texts.map(({ text }) => wordsOf(text));
  const asked = questions.map((question) => [...new Set(wordsOf(question))]);
  const lines = { texts: words.map((list) => list.join(' ')), questions: asked.map((list) => list.join(' ')) };
  const [json, ...files] = ['words.json', 'words-texts.txt', 'words-questions.txt'].map((name) => join(home, name));
  writeFileSync(json, JSON.stringify(lines));
  writeFileSync(files[0], lines.texts.map((line) => `${line}\n`).join(''));
  writeFileSync(files[1], lines.questions.map((line) => `${line}\n`).join(''));
  const { truth } = await sparseOf(context, home, 'bm25', () => bm25(words, asked));
  return { json, files, ...lines, truth };
}
