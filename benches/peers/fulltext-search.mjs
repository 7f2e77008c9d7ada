// node --expose-gc fulltext-search.mjs ENGINE MODULES INPUT.json SECONDS
//
// One of the full-text engines written in JavaScript, in a process of its own: ENGINE is minisearch, flexsearch, lunr or @orama/orama,
// installed in MODULES. INPUT holds { texts, questions }. Any word of a question may match, ten answers, the engine's own ranking with
// its own defaults. Prints one JSON object: what building took, memory, the best times of the questions asked within SECONDS in three
// passes, and the ranked texts (by position) of each.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import process from 'node:process';
import { pathToFileURL } from 'node:url';

import { summarize } from '../lib/statistics.mjs';

const K = 10;
const WARM_UP = 3;
const PASSES = 3;
const [engine, modules, input, limit] = process.argv.slice(2);
const { texts, questions } = JSON.parse(readFileSync(input, 'utf8'));
const require = createRequire(pathToFileURL(join(modules, 'package.json')));
const load = async (name) => import(pathToFileURL(require.resolve(name)).href);

/** Builds the index; answers a function that searches it. */
const BUILD = {
  async minisearch() {
    const module = await load('minisearch');
    const MiniSearch = module.default?.default ?? module.default;
    const index = new MiniSearch({ fields: ['text'] });
    index.addAll(texts.map((text, id) => ({ id, text })));
    return (question) =>
      index
        .search(question)
        .slice(0, K)
        .map(({ id }) => id);
  },
  async flexsearch() {
    const module = await load('flexsearch');
    const { Index } = module.default ?? module;
    const index = new Index({ tokenize: 'strict' });
    texts.forEach((text, id) => index.add(id, text));
    return (question) => index.search(question, { limit: K, suggest: true });
  },
  async lunr() {
    const module = await load('lunr');
    const lunr = module.default ?? module;
    const index = lunr(function build() {
      this.ref('id');
      this.field('text');
      texts.forEach((text, id) => this.add({ id, text }));
    });
    return (question) =>
      index
        .search(question)
        .slice(0, K)
        .map(({ ref }) => Number(ref));
  },
  async '@orama/orama'() {
    const { create, insertMultiple, search } = await load('@orama/orama');
    const index = create({ schema: { text: 'string' } });
    await insertMultiple(
      index,
      texts.map((text, id) => ({ id: String(id), text })),
      1000,
    );
    return async (question) => (await search(index, { term: question, limit: K })).hits.map(({ id }) => Number(id));
  },
};

const used = () => {
  globalThis.gc?.();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
};
const before = used();
const begun = performance.now();
const search = await BUILD[engine]();
const buildSeconds = (performance.now() - begun) / 1000;
const memoryBytes = used() - before;

const ends = performance.now() + 1000 * Number(limit);
for (const question of questions.slice(0, WARM_UP)) await search(question);
const [times, ranked] = [[], []];
for (let pass = 0; pass < PASSES && performance.now() < ends; pass += 1) {
  for (const [at, question] of questions.entries()) {
    const asked = performance.now();
    const found = await search(question);
    times[at] = Math.min(times[at] ?? Infinity, performance.now() - asked);
    ranked[at] = found;
    if (performance.now() > ends) break;
  }
}
console.log(JSON.stringify({ engine, buildSeconds, memoryBytes, ...summarize(times), ranked }));
