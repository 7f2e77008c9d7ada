// This commit against another one, over HTTP: two servers with the same documents, asked in turn. It shows whether what was built since
// then costs those who do not use it anything. `--base` is a built tree of the other commit (`git worktree add`, `npm ci`, `npm
// run build`); without one, in the small forms, the tree is compared with itself, which shows the noise. Each ratio is the median
// of the rounds' own ratios.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

import { bulkLines } from '../../scripts/lib/api-client.mjs';
import { ROOT } from '../../scripts/lib/paths.mjs';
import { StepFailed } from '../../scripts/lib/process.mjs';
import { median } from '../lib/statistics.mjs';
import { ask } from '../serving/ask.mjs';
import { vectorsOf } from '../serving/corpus.mjs';
import { FIELD, INDEX, MODEL, startSparrow } from '../serving/servers.mjs';

export const title = 'this commit against another one, over HTTP';

const SIZES = {
  smoke: { documents: 300, questions: 60, rounds: 1, one: 5, many: 10, copied: 20, checked: 5 },
  quick: { documents: 10_000, questions: 10_000, rounds: 3, one: 200, many: 600, copied: 300, checked: 20 },
  full: { documents: 60_000, questions: 20_000, rounds: 5, one: 400, many: 1500, copied: 1500, checked: 100 },
};
const BULK = 500;
const CLIENTS = 32;
const TEXTS = 'texts';
/** What a bulk leaves to be indexed behind its answer is not to be the other server's burden. */
const SETTLED_MS = 60;
/** What sums of single precision numbers in another order may differ by. */
const PRECISION = 1e-5;
/** The share of answers that must be equal: commits may differ in what was mended between them. */
const MOST = 0.9;
/** What two runs of one commit differ by on a shared machine. */
const SLOWER = { at_most: 1.05 };
const FEWER = { at_least: 0.95 };

const meaning = (text) => ({ sparse_vector: { field: FIELD, inference_id: MODEL, query: text } });
const words = (text) => ({ match: { text } });
const SEARCHES = {
  'a question by meaning': (text) => ({ query: meaning(text) }),
  'a question by words': (text) => ({ query: words(text) }),
  'both, filtered': (text) => ({
    query: { bool: { should: [meaning(text), words(text)], filter: { range: { length: { gte: 300 } } } } },
  }),
  'both, fused': (text) => ({ sub_searches: [{ query: words(text) }, { query: meaning(text) }], rank: { rrf: {} } }),
};

/** @param {import('../lib/context.mjs').Context} context */
export async function run(context) {
  const size = SIZES[context.size];
  if (context.base === undefined && context.size === 'full') {
    return { rows: [{ what: title, skipped: 'no --base, a built tree of another commit' }] };
  }
  const base = context.base ?? ROOT;
  const folder = mkdtempSync(join(context.work, 'commits-'));
  const servers = [];
  try {
    servers.push(await startSparrow(join(folder, 'this')), await startSparrow(join(folder, 'base'), { tree: base }));
    const answers = new Comparison(context, servers, size);
    await answers.fill();
    await answers.agree();
    await answers.search();
    await answers.reindex();
    const commit = execFileSync('git', ['rev-parse', '--short=10', 'HEAD'], { cwd: base, encoding: 'utf8' }).trim();
    const notes = [
      answers.equality,
      `${size.documents} passages; ${size.rounds} rounds, in turn; bulks of ${BULK} documents, one by one, each to both`,
      'clients and both servers share the machine; each server gets each question once',
    ];
    return { rows: answers.rows(`commit ${commit}`), notes };
  } finally {
    for (const server of servers) await server.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

const withoutVector = ({ id, title: name, text }) => ({ _id: id, title: name, text });

/** What two answers differ in: totals, documents or their sources, or scores by more than f32's sums do; undefined for nothing. */
function difference(ours, theirs) {
  if (JSON.stringify(ours.total) !== JSON.stringify(theirs.total)) {
    return `${JSON.stringify(ours.total)} hits here, ${JSON.stringify(theirs.total)} there`;
  }
  const close = (a, b) => Math.abs(a - b) <= PRECISION * Math.max(a, b);
  const own = new Map(ours.hits.map((hit) => [hit._id, hit]));
  for (const [at, hit] of theirs.hits.entries()) {
    const same = own.get(hit._id);
    if (!close(ours.hits[at]?._score, hit._score))
      return `hit ${at} scores ${ours.hits[at]?._score}, not ${hit._score}`;
    // Of scores that cannot be told apart, another document may be the last.
    if (same === undefined && close(hit._score, theirs.hits.at(-1)._score)) continue;
    if (JSON.stringify(same?._source) !== JSON.stringify(hit._source)) return `${hit._id} is not there as it was`;
  }
  return ours.hits.length === theirs.hits.length ? undefined : 'more hits';
}

/** Two servers, this commit's and the other's, and what was measured of them: pairs by what was measured. */
class Comparison {
  #context;
  #servers;
  #size;
  #measured = new Map();
  #equal = [];
  #turn = 0;
  #asked = 0;

  constructor(context, servers, size) {
    this.#context = context;
    this.#servers = servers;
    this.#size = size;
  }

  /** The same call to both, one after the other, each of them first in every second pair. */
  async #both(call) {
    const order = this.#turn % 2 === 0 ? [0, 1] : [1, 0];
    this.#turn += 1;
    const answers = [];
    for (const at of order) answers[at] = await call(this.#servers[at]);
    return answers;
  }

  #note(what, unit, target, [ours, theirs]) {
    const entry = this.#measured.get(what) ?? { unit, target, pairs: [] };
    entry.pairs.push([ours, theirs]);
    this.#measured.set(what, entry);
  }

  /** Documents with their vectors, through `_bulk`. */
  async fill() {
    const texts = await this.#context.texts(this.#size.documents);
    const vectors = await vectorsOf(this.#context, texts);
    const { mappings, settings } = this.#servers[0].create;
    const properties = { ...mappings.properties, length: { type: 'integer' } };
    const create = { settings, mappings: { ...mappings, properties } };
    await this.#both(({ request }) => request('PUT', `/${INDEX}`, create));
    await this.#both(({ request }) => request('PUT', `/${TEXTS}`, this.#servers[0].create));
    for (let from = 0; from < texts.length; from += BULK) {
      const lines = bulkLines(
        texts.slice(from, from + BULK).map(({ id, title: name, text }, at) => {
          return { _id: id, title: name, text, length: text.length, [FIELD]: vectors.row(from + at) };
        }),
      );
      await this.#bulk(`bulk of ${BULK} passages with vectors`, INDEX, lines);
      await this.#bulk(`bulk of ${BULK} passages`, TEXTS, bulkLines(texts.slice(from, from + BULK).map(withoutVector)));
    }
    await this.#both(({ request }) => request('DELETE', `/${TEXTS}`));
    // A search is to meet the same on both: nothing in memory, nothing merging, and not two segments where the other has five, as
    // the moments at which either merged left them.
    await this.#both(({ request }) => request('POST', `/${INDEX}/_refresh`));
    await this.#both(({ request }) => request('POST', `/${INDEX}/_flush`));
    await this.#both(({ request }) => request('POST', `/${INDEX}/_forcemerge?max_num_segments=1`));
  }

  async #bulk(what, index, lines) {
    const times = await this.#both(async ({ request }) => {
      await sleep(SETTLED_MS);
      const begun = performance.now();
      const { errors } = await request('POST', `/${index}/_bulk`, lines);
      if (errors) throw new StepFailed(`a document of ${index} was refused`);
      return performance.now() - begun;
    });
    this.#note(what, 'ms', SLOWER, times);
  }

  /** Both answer the same, but for what was mended between the two commits. */
  async agree() {
    const questions = (await this.#context.questions(this.#size.questions)).slice(-this.#size.checked);
    for (const [kind, body] of Object.entries(SEARCHES)) {
      let equal = 0;
      for (const question of questions) {
        const found = await this.#both(({ request }) => request('POST', `/${INDEX}/_search`, body(question)));
        const differs = difference(...found.map(({ hits }) => hits));
        if (differs === undefined) equal += 1;
        else this.#context.log(`${kind} “${question}”: ${differs}`);
      }
      if (equal < MOST * questions.length)
        throw new StepFailed(`${kind}: ${equal} of ${questions.length} answers are equal`);
      this.#equal.push(`${kind}: ${equal} of ${questions.length}`);
    }
  }

  async search() {
    const { rounds, one, many, checked } = this.#size;
    const questions = (await this.#context.questions(this.#size.questions)).slice(0, -checked);
    for (let round = 0; round < rounds; round += 1) {
      for (const [kind, query] of Object.entries(SEARCHES)) {
        const alone = await this.#ask(query, questions, { clients: 1, count: one });
        this.#note(
          `${kind}, one client, p50`,
          'ms',
          SLOWER,
          alone.map(({ ms }) => ms.p50),
        );
        this.#note(
          `${kind}, one client, p95`,
          'ms',
          null,
          alone.map(({ ms }) => ms.p95),
        );
        const crowd = await this.#ask(query, questions, { clients: CLIENTS, count: many });
        this.#note(
          `${kind}, ${CLIENTS} clients`,
          'requests/s',
          FEWER,
          crowd.map(({ perSecond }) => perSecond),
        );
      }
    }
  }

  /** Questions that neither was asked before, while there are some. */
  async #ask(query, questions, { clients, count }) {
    const warm = Math.ceil(count / 4);
    const requests = Array.from({ length: count + warm }, (_, at) => questions[(this.#asked + at) % questions.length]);
    this.#asked += requests.length;
    return this.#both((server) => ask(this.#context, { ...server, query }, requests, { clients, count, warm }));
  }

  /** Documents of their own for each round, so that no encoding is known. */
  async reindex() {
    const { rounds, copied } = this.#size;
    const texts = (await this.#context.texts(this.#size.documents)).slice(0, rounds * copied);
    const processors = [
      { inference: { model_id: MODEL, input_output: [{ input_field: 'text', output_field: FIELD }] } },
    ];
    await this.#both(({ request }) => request('PUT', '/_ingest/pipeline/encode', { processors }));
    for (let round = 0; round < rounds; round += 1) {
      const [source, dest] = [`texts-${round}`, `copy-${round}`];
      const part = texts.slice(round * copied, (round + 1) * copied);
      const lines = bulkLines(part.map(withoutVector));
      await this.#both(({ request }) => request('POST', `/${source}/_bulk`, lines));
      await this.#both(({ request }) => request('POST', `/${source}/_refresh`));
      await this.#both(({ request }) => request('PUT', `/${dest}`, this.#servers[0].create));
      const rates = await this.#both(async ({ request }) => {
        const begun = performance.now();
        const body = { source: { index: source }, dest: { index: dest, pipeline: 'encode' } };
        const { created } = await request('POST', '/_reindex', body);
        if (created !== part.length) throw new StepFailed(`${created} documents were copied, not ${part.length}`);
        return part.length / ((performance.now() - begun) / 1000);
      });
      this.#note(`reindex of ${copied} passages through the model`, 'documents/s', FEWER, rates);
    }
  }

  get equality() {
    return `equal answers (totals, documents, scores within 1e-5): ${this.#equal.join(', ')}`;
  }

  rows(against) {
    const checked = `${this.equality}; all documents arrived`;
    const promised = this.#context.base !== undefined && this.#context.size === 'full';
    return [...this.#measured].map(([what, { unit, target, pairs }]) => ({
      ...{ what, against, unit, checked },
      sparrow: median(pairs.map(([ours]) => ours)),
      peer: median(pairs.map(([, theirs]) => theirs)),
      ratio: median(pairs.map(([ours, theirs]) => ours / theirs)),
      target: promised ? target : null,
      detail: pairs.length > 20 ? { pairs: pairs.length } : { pairs },
    }));
  }
}
