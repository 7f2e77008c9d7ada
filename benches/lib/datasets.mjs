// Collections in the forms in which they are published: a folder of BEIR, MS MARCO's passages, the sparse track of big-ann-benchmarks, and
// files of JSON lines that were made for these benchmarks. Only what is asked for is read.
import { createReadStream, existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { createGunzip } from 'node:zlib';

import { StepFailed } from '../../scripts/lib/process.mjs';
import { CsrFile } from './csr.mjs';

/**
 * @typedef {{ id: string, title: string, text: string }} Text
 * @typedef {Map<string, Map<string, number>>} Judgements for each question by its id, grades of texts by theirs
 * @typedef {object} Dataset
 * @property {string} kind
 * @property {Record<string, string>} files their names in the folder: texts, questions, perhaps judgements
 * @property {(count: number) => Promise<Text[]>} texts the first `count`
 * @property {(count: number) => Promise<{ id: string, text: string }[]>} questions the first `count`, judged ones where there are judgements
 * @property {() => Promise<Judgements>} judgements none where the folder has none
 */

/** The lines of a file, unzipped where its name says that it is zipped. */
async function* linesOf(file) {
  const stream = createReadStream(file);
  const input = file.endsWith('.gz') ? stream.pipe(createGunzip()) : stream;
  try {
    for await (const line of createInterface({ input, crlfDelay: Infinity })) if (line !== '') yield line;
  } finally {
    stream.destroy();
  }
}

/** What `read` makes of the first lines, `count` at most; it skips a line by undefined. */
async function first(file, count, read) {
  const rows = [];
  if (count <= 0) return rows;
  for await (const line of linesOf(file)) {
    const row = read(line);
    if (row === undefined) continue;
    rows.push(row);
    if (rows.length >= count) break;
  }
  return rows;
}

const jsonText = (line) => {
  const { _id, title, text } = JSON.parse(line);
  return { id: String(_id), title: title ?? '', text };
};
const tabbedText = (line) => {
  const tab = line.indexOf('\t');
  if (tab < 0) throw new StepFailed(`a line without a tab: ${line.slice(0, 60)}`);
  return { id: line.slice(0, tab), title: '', text: line.slice(tab + 1) };
};

/** BEIR's judgements have three columns and a heading, those of TREC four, the second of which says nothing. */
function judgement(line) {
  const fields = line.split(/\s+/);
  const [question, text, grade] = fields.length === 4 ? [fields[0], fields[2], fields[3]] : fields;
  return question === 'query-id' ? undefined : { question, text, grade: Number(grade) };
}

/** The name among several that is there, as it is or zipped. */
const present = (folder, names) =>
  names.flatMap((name) => [name, `${name}.gz`]).find((name) => existsSync(join(folder, name)));

const FORMS = [
  {
    kind: 'beir',
    texts: ['corpus.jsonl'],
    questions: ['queries.jsonl'],
    judgements: ['qrels/test.tsv', 'qrels/dev.tsv', 'qrels/train.tsv', 'qrels.test.tsv', 'qrels.dev.tsv'],
    read: jsonText,
  },
  {
    kind: 'msmarco',
    texts: ['collection.tsv'],
    questions: ['queries.dev.small.tsv', 'queries.dev.tsv'],
    judgements: ['qrels.dev.small.tsv', 'qrels.dev.tsv'],
    read: tabbedText,
  },
  {
    kind: 'passages',
    texts: ['passages-200k.jsonl'],
    questions: ['queries-20k.jsonl'],
    judgements: [],
    read: jsonText,
  },
];

/**
 * @typedef {object} Vectors
 * @property {'big-ann'} kind
 * @property {Record<string, string>} files as above
 * @property {{ documents: string, truth: string }[]} bases matrices of documents (csr.mjs) that are there, the smallest first, and where the
 *   exact answers of all questions lie
 * @property {string} asked the matrix of questions
 */

/** @returns {Dataset | Vectors} */
export function openDataset(folder) {
  for (const { kind, texts, questions, judgements, read } of FORMS) {
    const [documents, asked] = [present(folder, texts), present(folder, questions)];
    if (documents === undefined || asked === undefined) continue;
    const judged = present(folder, judgements);
    return dataset(folder, kind, { texts: documents, questions: asked, judgements: judged }, read);
  }
  if (existsSync(join(folder, ASKED)) && baseFiles(folder).length > 0) return bigAnn(folder);
  throw new StepFailed(
    `${folder} has none of: corpus.jsonl and queries.jsonl (BEIR); collection.tsv and queries.dev.small.tsv (MS MARCO); ` +
      'base_small.csr and queries.dev.csr (big-ann); passages-200k.jsonl.gz and queries-20k.jsonl.gz',
  );
}

function dataset(folder, kind, files, read) {
  let judged;
  const judgements = async () => {
    if (judged !== undefined) return judged;
    judged = new Map();
    if (files.judgements === undefined) return judged;
    for await (const line of linesOf(join(folder, files.judgements))) {
      const found = judgement(line);
      // A grade of nothing says that a text was looked at.
      if (found === undefined || !(found.grade > 0)) continue;
      const grades = judged.get(found.question) ?? new Map();
      judged.set(found.question, grades.set(found.text, found.grade));
    }
    return judged;
  };
  return {
    kind,
    files,
    judgements,
    texts: (count) => first(join(folder, files.texts), count, read),
    async questions(count) {
      const wanted = await judgements();
      return first(join(folder, files.questions), count, (line) => {
        const { id, text } = read(line);
        return wanted.size === 0 || wanted.has(id) ? { id, text } : undefined;
      });
    },
  };
}

/** Matrices of documents, the smallest first. */
const SIZES = ['base_small.csr', 'base_1M.csr', 'base_full.csr'];
const ASKED = 'queries.dev.csr';
const baseFiles = (folder) => readdirSync(folder).filter((name) => SIZES.includes(name));

function bigAnn(folder) {
  const there = SIZES.filter((name) => baseFiles(folder).includes(name));
  const bases = there.map((name) => ({
    documents: join(folder, name),
    truth: join(folder, name.replace('.csr', '.dev.gt')),
  }));
  return { kind: 'big-ann', files: { texts: there.at(-1), questions: ASKED }, bases, asked: join(folder, ASKED) };
}

/**
 * The smallest matrix that has so many rows, else the largest, and how many it has.
 *
 * @param {Vectors} vectors
 */
export function baseOf({ bases }, rows) {
  const counted = bases.map((base) => ({ ...base, rows: CsrFile.rowsOf(base.documents) }));
  return counted.find((base) => base.rows >= rows) ?? counted.at(-1);
}
