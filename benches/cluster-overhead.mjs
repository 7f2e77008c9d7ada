// node benches/cluster-overhead.mjs --cluster URL --sparrow URL [--index NAME] [--rounds N]
//
// What Sparrow adds to a search over a cluster: the same question, once to the bare cluster in its own form and once through
// Sparrow, in turn. SPARROW_API_KEY is Sparrow's key. The index is what `npm run demo -- --url SPARROW` makes.
import { parseArgs } from 'node:util';
import { Agent, request } from 'node:http';

const { values } = parseArgs({
  options: {
    cluster: { type: 'string' },
    sparrow: { type: 'string' },
    index: { type: 'string', default: 'demo-dictionary' },
    rounds: { type: 'string', default: '1000' },
  },
});
const MODEL = '.sparse_encoder_model_2';
const FIELD = 'gloss_embedding';
const agent = new Agent({ keepAlive: true });
const authorization = `ApiKey ${process.env.SPARROW_API_KEY ?? ''}`;

/** Sends a body; resolves with the milliseconds until the whole answer was there, and the answer. */
function post(base, path, body) {
  const begun = performance.now();
  return new Promise((resolve, reject) => {
    const headers = { 'content-type': 'application/json', authorization, 'content-length': Buffer.byteLength(body) };
    const sent = request(base + path, { method: 'POST', agent, headers }, (response) => {
      const chunks = [];
      response.on('data', (chunk) => chunks.push(chunk));
      response.on('end', () => {
        const ms = performance.now() - begun;
        const text = Buffer.concat(chunks).toString();
        if (response.statusCode === 200) resolve({ ms, body: JSON.parse(text) });
        else reject(new Error(`${base}${path}: ${response.statusCode} ${text.slice(0, 300)}`));
      });
    });
    sent.on('error', reject);
    sent.end(body);
  });
}

const QUESTIONS = [
  'fear of open spaces',
  'someone who collects stamps',
  'to walk without hurry',
  'a doctor for animals',
  'baby dog',
];

async function tokensOf(text) {
  const body = JSON.stringify({ docs: [{ text_field: text }] });
  return (await post(values.sparrow, `/_ml/trained_models/${MODEL}/_infer`, body)).body.inference_results[0]
    .predicted_value;
}

const vectors = await Promise.all(QUESTIONS.map(tokensOf));
const sparse = (at) => ({ bool: { should: [{ neural_sparse: { [FIELD]: { query_tokens: vectors[at] } } }] } });
const KINDS = {
  'words, passed on': {
    bare: (at) => ({ query: { match: { gloss: QUESTIONS[at] } }, _source: ['words'] }),
    sparrow: (at) => ({ query: { match: { gloss: QUESTIONS[at] } }, _source: ['words'] }),
  },
  'tokens given': {
    bare: (at) => ({ query: sparse(at), _source: ['words'] }),
    sparrow: (at) => ({ query: { sparse_vector: { field: FIELD, query_vector: vectors[at] } }, _source: ['words'] }),
  },
  'a text, encoded by Sparrow': {
    bare: (at) => ({ query: sparse(at), _source: ['words'] }),
    sparrow: (at) => ({
      query: { text_expansion: { [FIELD]: { model_id: MODEL, model_text: QUESTIONS[at] } } },
      _source: ['words'],
    }),
  },
};

const at = (sorted, share) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))];
const path = `/${values.index}/_search`;
for (const [name, { bare, sparrow }] of Object.entries(KINDS)) {
  const times = { bare: [], sparrow: [] };
  for (let round = -200; round < Number(values.rounds); round += 1) {
    const question = Math.abs(round) % QUESTIONS.length;
    const one = await post(values.cluster, path, JSON.stringify(bare(question)));
    const two = await post(values.sparrow, path, JSON.stringify(sparrow(question)));
    const ids = (answer) => answer.body.hits.hits.map(({ _id, _score }) => `${_id} ${_score.toFixed(3)}`).join();
    if (ids(one) !== ids(two)) throw new Error(`${name}: the answers differ:\n${ids(one)}\n${ids(two)}`);
    if (round < 0) continue;
    times.bare.push(one.ms);
    times.sparrow.push(two.ms);
  }
  const shown = Object.fromEntries(
    Object.entries(times).map(([side, all]) => {
      const sorted = all.sort((a, b) => a - b);
      return [side, { p50: at(sorted, 0.5).toFixed(2), p99: at(sorted, 0.99).toFixed(2) }];
    }),
  );
  console.log(JSON.stringify({ name, ...shown }));
}
agent.destroy();
