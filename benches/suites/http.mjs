// A question over HTTP: text in, ten hits with their source out. Sparrow, which encodes the question too, against OpenSearch's
// neural_sparse, which is handed the tokens that Sparrow made. Both hold the same documents with the same vectors, index title
// and text as well, and answer with the documents without their vectors (excluded from `_source` by the mapping). One client
// and 32; all questions distinct, so that no cache of encodings helps, but for the row that says so.
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';

import { keptFolder } from '../lib/programs.mjs';
import { ask } from '../serving/ask.mjs';
import { vectorsOf } from '../serving/corpus.mjs';
import { FIELD, MODEL, fill, load, sparrowFolder, startOpenSearch, startSparrow } from '../serving/servers.mjs';

export const title = 'A question over HTTP, against OpenSearch 2.19';

const SIZES = {
  smoke: { documents: 300, questions: 60, one: 30, many: 90, checked: 10, rounds: 1 },
  quick: { documents: 20_000, questions: 12_000, one: 600, many: 2000, checked: 50, rounds: 3 },
  full: { documents: 200_000, questions: 20_000, one: 1000, many: 3000, checked: 200, rounds: 3 },
};
const CLIENTS = 32;
/** OpenSearch keeps 9 significant bits of a weight. */
const OPENSEARCH_PRECISION = 0.004;

/** @returns {Promise<{rows: object[], notes?: string[]}>} */
export async function run(context) {
  const size = SIZES[context.size];
  const texts = await context.texts(size.documents);
  const questions = [...new Set(await context.questions(size.questions))];
  mkdirSync(context.work, { recursive: true });
  const data = dataFolder(context, 'sparrow', texts.length);
  let sparrow = await startSparrow(data);
  let peer;
  try {
    await fill(context, sparrow, texts);
    const asked = await tokensOf(sparrow, context.peers === undefined ? [] : questions);
    // A new process knows no encoding of any of them.
    await sparrow.stop();
    sparrow = await startSparrow(data);
    const servers = [sparrow];
    if (context.peers !== undefined && context.size !== 'smoke') {
      peer = await startOpenSearch(context.peers, dataFolder(context, 'opensearch', texts.length));
      await load(peer, texts, await vectorsOf(context, texts), context.log);
      servers.push(peer);
    }
    const requests = questions.map((text) => ({ text, tokens: asked.get(text) }));
    // The questions that are checked are not among those that are timed.
    const checked = await check(servers, requests.slice(-size.checked));
    return await measure(context, size, servers, requests.slice(0, -size.checked), checked);
  } finally {
    await sparrow.stop();
    await peer?.stop();
    if (context.size === 'smoke') rmSync(data, { recursive: true, force: true });
  }
}

async function measure(context, size, servers, requests, checked) {
  const plans = {
    one: { clients: 1, count: size.one, warm: Math.ceil(size.one / 3) },
    many: { clients: CLIENTS, count: size.many, warm: Math.ceil(size.many / 4), probe: '/_health' },
  };
  const best = {};
  // In turns, so that a disturbance of the machine meets both; the best of each counts, for both.
  let asked = 0;
  for (let round = 0; round < size.rounds; round += 1) {
    for (const [name, plan] of Object.entries(plans)) {
      // Never asked before, while there are some.
      const from = asked % requests.length;
      const questions = [...requests.slice(from), ...requests.slice(0, from)];
      asked += plan.count + plan.warm;
      for (const server of servers) {
        const result = await ask(context, server, questions, plan);
        const slot = `${server.name} ${name}`;
        context.log(`${slot}: p50 ${result.ms.p50} ms, ${Math.round(result.perSecond)} requests/s`);
        const better = name === 'one' ? result.ms.p50 < best[slot]?.ms.p50 : result.perSecond > best[slot]?.perSecond;
        if (best[slot] === undefined || better) best[slot] = result;
      }
    }
  }
  const [sparrow, peer] = servers;
  // Asked twice: the second time every encoding is known.
  const known = requests.slice(0, Math.min(size.one, 300));
  await ask(context, sparrow, known, { clients: 1, count: known.length, warm: 0 });
  const repeated = await ask(context, sparrow, known, { clients: 1, count: known.length, warm: 0 });
  const of = (server, name) => (server === undefined ? undefined : best[`${server.name} ${name}`]);
  const row = (what, name, unit, figure, target, extra = {}) => {
    const [ours, theirs] = [of(sparrow, name), of(peer, name)];
    const ratio = theirs === undefined ? null : figure(ours) / figure(theirs);
    return {
      what,
      against: 'OpenSearch 2.19 neural_sparse, tokens given',
      unit,
      sparrow: figure(ours),
      peer: theirs === undefined ? null : figure(theirs),
      ratio,
      target,
      met: ratio === null ? null : target.at_most !== undefined ? ratio <= target.at_most : ratio >= target.at_least,
      checked,
      detail: { sparrow: ours, ...(theirs === undefined ? {} : { peer: theirs }), ...extra },
      ...(theirs === undefined ? { skipped: 'no folder of peers' } : {}),
    };
  };
  const rows = [
    row('one client, p50', 'one', 'ms', ({ ms }) => ms.p50, { at_most: 0.333 }),
    row('32 clients, requests per second', 'many', '1/s', ({ perSecond }) => perSecond, { at_least: 4 }),
    {
      ...row('one client, questions asked before, p50', 'one', 'ms', ({ ms }) => ms.p50, {}),
      sparrow: repeated.ms.p50,
      peer: of(sparrow, 'one').ms.p50,
      against: 'Sparrow, questions that are new',
      ratio: repeated.ms.p50 / of(sparrow, 'one').ms.p50,
      target: null,
      met: null,
      skipped: undefined,
      detail: { repeated },
    },
  ];
  const notes = [
    `${requests.length} distinct questions over ${size.documents} documents; client and server share the machine's cores`,
    'both answer title and text of ten hits; the vector is excluded from _source by both mappings; OpenSearch: 1 shard, ' +
      `merged to 1 segment, heap 2 GB, niceness ${peer?.niceness ?? '-'}`,
    'CPU is in microseconds a request, by thread name for Sparrow; the best of the rounds counts, for both',
  ];
  return { rows, notes };
}

/** The tokens that Sparrow's own encoder makes of questions. */
async function tokensOf(sparrow, questions) {
  const tokens = new Map();
  for (let from = 0; from < questions.length; from += 100) {
    const texts = questions.slice(from, from + 100);
    const docs = texts.map((text) => ({ text_field: text }));
    const { inference_results: results } = await sparrow.request('POST', `/_ml/trained_models/${MODEL}/_infer`, {
      docs,
    });
    texts.forEach((text, at) => tokens.set(text, results[at].predicted_value));
  }
  return tokens;
}

/**
 * Sparrow's ten hits are those of its own exhaustive scoring (a clause inside a larger `bool` is scored without pruning), to the
 * bit; the peer's are the same but for documents whose scores its coarser weights cannot tell apart.
 */
async function check(servers, requests) {
  const [sparrow, peer] = servers;
  for (const request of requests) {
    const found = await hits(sparrow, sparrow.query(request));
    const nothing = { match_none: {} };
    const exhaustive = await hits(sparrow, { query: { bool: { should: [sparrow.query(request).query, nothing] } } });
    if (JSON.stringify(found) !== JSON.stringify(exhaustive)) {
      throw new Error(`“${request.text}”: ${JSON.stringify(found)} is not ${JSON.stringify(exhaustive)}`);
    }
    if (peer === undefined) continue;
    const theirs = await hits(peer, peer.query(request));
    const least = found.at(-1)?.[1] ?? 0;
    const ours = new Map(found);
    for (const [id, score] of theirs) {
      const known = ours.get(id) ?? least;
      if (Math.abs(score - known) > known * OPENSEARCH_PRECISION) {
        throw new Error(`“${request.text}”: OpenSearch scores ${id} ${score}, Sparrow ${known}`);
      }
    }
    if (theirs.length !== found.length)
      throw new Error(`“${request.text}”: ${theirs.length} hits, not ${found.length}`);
  }
  const of = `${requests.length} questions: Sparrow's hits equal its exhaustive scores`;
  return peer === undefined ? of : `${of}; OpenSearch's top ten equal within its 9-bit weights`;
}

async function hits(server, body) {
  const answer = await server.request('POST', server.path, body);
  for (const { _source: source } of answer.hits.hits) {
    if (typeof source.text !== 'string' || source[FIELD] !== undefined) throw new Error('a hit shows another source');
  }
  return answer.hits.hits.map(({ _id: id, _score: score }) => [id, score]);
}

function dataFolder(context, name, documents) {
  if (context.size === 'smoke') return mkdtempSync(join(context.work, `${name}-`));
  if (name === 'sparrow') return sparrowFolder(context, documents);
  const made = { crates: ['encoder'], files: ['packages/model-splade-tiny'], of: context.identity('texts') };
  return keptFolder(context.work, `${name}-${documents}`, made);
}
