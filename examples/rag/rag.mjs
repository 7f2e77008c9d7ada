#!/usr/bin/env node
// Answers a question from a folder of texts: Sparrow finds the passages, and the sentences that answer are picked out of them.
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { basename, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

import { Client } from '@elastic/elasticsearch';

/** Passages that an answer may come from. */
const PASSAGES = 5;
/** Most sentences of an answer. */
const SENTENCES = 2;
/** Cosine of question and sentence below which a sentence is no answer. On texts of your own, look at a few and set it anew. */
const LEAST_LIKENESS = 0.3;
/** A second sentence counts if it is nearly as near as the first one. */
const NEARLY = 0.8;
/** A place where a paragraph, a row of a table or an item of a list ends and the next one begins. */
const BETWEEN_BLOCKS = /\n\s*\n|\n(?=\s*(?:[-*|]|\d+\.)\s)/;
const NOTHING = 'The texts do not say.';
const DENSE = '.all-minilm-l6-v2-elasticsearch';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { texts: { type: 'string' }, index: { type: 'string' }, prompt: { type: 'boolean', default: false } },
});
const question = positionals.join(' ').trim();
if (question === '') {
  console.error('usage: node examples/rag/rag.mjs [--texts DIR] [--index NAME] [--prompt] QUESTION');
  process.exit(2);
}

const folder = resolve(values.texts ?? fileURLToPath(new URL('texts', import.meta.url)));
const index =
  values.index ??
  `rag-${basename(folder)
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')}`;
const client = new Client({
  node: process.env.SPARROW_URL ?? 'http://127.0.0.1:9200',
  auth: { apiKey: process.env.SPARROW_API_KEY ?? ownerKey('data/owner.key') },
});

await load();
const passages = await retrieve();
console.log(values.prompt ? prompt() : await answer());

function ownerKey(file) {
  if (existsSync(file)) return readFileSync(file, 'utf8').trim();
  console.error(
    `there is no ${file} here: run this in the folder of the server's data directory, or set SPARROW_API_KEY`,
  );
  process.exit(2);
}

/** Reads the folder into the index, unless it holds the same texts already. */
async function load() {
  if (!existsSync(folder)) throw new Error(`there is no folder ${folder}`);
  const documents = readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => /\.(?:md|txt)$/.test(name))
    .sort()
    .flatMap((name) => sections(relative(folder, join(folder, name)), readFileSync(join(folder, name), 'utf8')));
  if (documents.length === 0) throw new Error(`${folder} has no .md or .txt files`);
  const fingerprint = createHash('sha256').update(JSON.stringify(documents)).digest('hex');
  if (await client.indices.exists({ index })) {
    const known = await client.indices.getMapping({ index });
    if (known[index]?.mappings._meta?.fingerprint === fingerprint) return;
    await client.indices.delete({ index });
  }
  // One mapping for words, sparse and dense vectors. Short passages: each should say one thing.
  const semantic = {
    type: 'semantic_text',
    inference_id: '.hybrid',
    chunking_settings: { strategy: 'sentence', max_chunk_size: 60, sentence_overlap: 1 },
  };
  await client.indices.create({
    index,
    mappings: {
      properties: {
        file: { type: 'keyword' },
        heading: { type: 'text' },
        text: { type: 'text', fields: { semantic } },
      },
    },
  });
  const { failed } = await client.helpers.bulk({
    datasource: documents,
    refreshOnCompletion: index,
    onDocument: () => ({ index: { _index: index } }),
  });
  if (failed > 0) throw new Error(`${failed} of ${documents.length} sections could not be written`);
  // Only a folder that was read to its end is known.
  await client.indices.putMapping({ index, _meta: { fingerprint } });
}

/** A text cut at its headings, of which there are none in code; each section knows the headings around it. */
function sections(file, text) {
  const found = [];
  const path = [];
  let lines = [];
  let isCode = false;
  const end = () => {
    const body = lines.join('\n').trim();
    // A level may be left out, as where ### follows #.
    if (body !== '') found.push({ file, heading: path.filter(Boolean).join(' › '), text: body });
    lines = [];
  };
  for (const line of text.split(/\r?\n/)) {
    if (/^\s*(?:```|~~~)/.test(line)) isCode = !isCode;
    const heading = isCode ? null : /^(#{1,6}) +(.+?)(?: +#+)? *$/.exec(line);
    if (heading === null) {
      lines.push(line);
      continue;
    }
    end();
    path.length = heading[1].length - 1;
    path.push(heading[2]);
  }
  end();
  return found;
}

/** The sections that fit best by all three lists, each with the paragraphs of its best passages. */
async function retrieve() {
  const { hits } = await client.search({
    index,
    size: PASSAGES,
    retriever: { linear: { query: question } },
    highlight: { fields: { 'text.semantic': { number_of_fragments: 2, order: 'score' } } },
  });
  return hits.hits.map(({ _source: { file, heading, text }, highlight }) => ({
    source: heading === '' ? file : `${file}, ${heading}`,
    text: blocksOf(text, highlight?.['text.semantic'] ?? []),
  }));
}

/** The blocks of a text that passages begin, end or lie in, each once and whole: a passage may end within a sentence. */
function blocksOf(text, found) {
  const places = found.map((passage) => passage.trim()).map((passage) => [text.indexOf(passage), passage.length]);
  if (places.length === 0 || places.some(([start]) => start < 0)) return text;
  let end = 0;
  const blocks = text.split(BETWEEN_BLOCKS).filter((block) => {
    const start = text.indexOf(block, end);
    end = start + block.length;
    return places.some(([place, length]) => place < end && start < place + length);
  });
  return blocks.join('\n\n');
}

/** The sentences of the passages that are nearest to the question, in the order of the text, with the numbers of their sources. */
async function answer() {
  const sentences = passages.flatMap(({ text, source }) => sentencesOf(text).map((sentence) => ({ sentence, source })));
  const unique = sentences.filter((one, at) => sentences.findIndex(({ sentence }) => sentence === one.sentence) === at);
  if (unique.length === 0) return NOTHING;
  const [asked, ...vectors] = await embed([question, ...unique.map(({ sentence }) => sentence)]);
  const found = unique.map((one, at) => ({ ...one, at, likeness: dot(asked, vectors[at]) }));
  const best = Math.max(...found.map(({ likeness }) => likeness));
  if (best < LEAST_LIKENESS) return NOTHING;
  const chosen = [...found]
    .sort((a, b) => b.likeness - a.likeness)
    .slice(0, SENTENCES)
    .filter(({ likeness }) => likeness >= best * NEARLY)
    .sort((a, b) => a.at - b.at);
  const sources = [...new Set(chosen.map(({ source }) => source))];
  return [
    chosen.map(({ sentence, source }) => `${sentence} [${sources.indexOf(source) + 1}]`).join(' '),
    '',
    ...sources.map((source, at) => `[${at + 1}] ${source}`),
  ].join('\n');
}

/** Sentences of a Markdown text: what stands in tables, code and pictures is none. */
function sentencesOf(text) {
  return text
    .replace(/```[\s\S]*?(?:```|$)/g, '\n\n')
    .split(BETWEEN_BLOCKS)
    .filter((block) => !/^\s*(?:\||!\[)/.test(block))
    .flatMap((block) =>
      block
        .replace(/^\s*(?:[-*]|\d+\.)\s+/, '')
        .replace(/\s+/g, ' ')
        .trim()
        .split(/(?<=[.!?]) +(?=\p{Lu})/u),
    )
    .filter((sentence) => sentence.split(' ').length > 3);
}

/** Vectors of length 1, by the dense model in the server. */
async function embed(input) {
  const made = await client.inference.inference({ inference_id: DENSE, input, timeout: '60s' });
  return made.text_embedding.map(({ embedding }) => embedding);
}

/** The cosine of two vectors of length 1. */
function dot(one, other) {
  return one.reduce((sum, value, at) => sum + value * other[at], 0);
}

/** What a language model is to be given. */
function prompt() {
  const numbered = passages.map(({ source, text }, at) => `[${at + 1}] ${source}\n${text}`).join('\n\n');
  return `Answer the question from the passages alone, in at most three sentences, and put the number of the passage behind each
statement, like [1]. If the passages do not say, answer: "${NOTHING}"

${numbered}

Question: ${question}
Answer:`;
}
