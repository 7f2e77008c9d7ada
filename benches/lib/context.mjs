// What every suite is given.
import process from 'node:process';

import { Corpus } from './corpus.mjs';
import { watchOthers } from './machine.mjs';
import { folder, python, rustBench, rustEnvironment, rustExample } from './programs.mjs';

/**
 * @typedef {object} Context
 * @property {'smoke' | 'quick' | 'full'} size smoke checks answers in a few seconds, quick gives figures of a small corpus in some
 *   minutes, full the published tables
 * @property {string | undefined} data folder with passages-200k.jsonl.gz and queries-20k.jsonl.gz, perhaps squad/
 * @property {string | undefined} peers folder with the launchers of other engines
 * @property {string | undefined} base a built tree of another commit
 * @property {number | undefined} million how many passages with two vectors are loaded into three nodes
 * @property {string} work scratch folder; what is expensive is kept there for the next run
 * @property {boolean} prepare only fill the work folder (indexes of peers, vectors), measure nothing
 * @property {(text: string) => void} log progress
 * @property {(name: string) => Promise<string>} rustExample builds an example of a crate; its path
 * @property {(crate: string, name: string) => Promise<string>} rustBench builds a criterion benchmark; its path
 * @property {Record<string, string>} rustEnv what Rust programs that load models need in their environment
 * @property {() => Promise<{ path: string } | { skipped: string }>} python an interpreter with the peers' packages
 * @property {(kind: 'texts' | 'questions') => string} identity tells these texts or questions from those of another data folder
 * @property {(count: number) => Promise<{ id: string, title: string, text: string }[]>} texts
 * @property {(count: number) => Promise<string[]>} questions
 * @property {(kind: 'texts' | 'questions', count: number) => Promise<{ prefix: string, rows: number }>} vectors their vectors, in
 *   files (see vectors.mjs)
 * @property {(name: string) => string} folder a folder of the work folder, made when it is missing
 * @property {() => (() => number | null)} watchOthers how many cores other processes use, from this call to the next
 */

/** @returns {Context} */
export function createContext({ size, data, peers, base, million, work, prepare, log }) {
  const corpus = new Corpus({ data, work, log });
  const skip = { skipped: 'peers are measured by `npm run bench -- --full`' };
  return {
    size,
    data,
    peers,
    base,
    million,
    work,
    prepare,
    log,
    corpus,
    rustExample,
    rustBench,
    rustEnv: rustEnvironment(),
    python: () => (size === 'full' || process.env.SPARROW_BENCH_PYTHON ? python(work) : Promise.resolve(skip)),
    identity: (kind) => corpus.identity(kind),
    texts: (count) => corpus.texts(count),
    questions: (count) => corpus.questions(count),
    vectors: (kind, count) => corpus.vectors(kind, count),
    folder: (name) => folder(work, name),
    watchOthers,
  };
}
