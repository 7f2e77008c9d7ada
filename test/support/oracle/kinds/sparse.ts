/** Token weights. */
import { boost, type Query, single } from '../clauses.js';
import { type Corpus, type Doc, TOKENS } from '../corpus.js';
import type { Kinds } from '../queries.js';
import type { Random } from '../random.js';
import { type Score, sum } from '../words.js';

/** Tokens that pruning leaves, by its definition. */
function kept(tokens: Readonly<Record<string, number>>, config: Query, corpus: Corpus): string[] {
  const docs = corpus.docs.map(({ source }) => Object.keys(source.sv ?? {})).filter((own) => own.length > 0);
  const postings = docs.reduce((all, own) => all + own.length, 0);
  // In single precision, as Elasticsearch computes it: what is pruned may hang on the last bit.
  const { fround } = Math;
  const average = fround(fround(postings / docs.length) / new Set(docs.flat()).size);
  const heaviest = Math.max(...Object.values(tokens));
  return Object.entries(tokens)
    .filter(([token, weight]) => {
      const share = fround(docs.filter((own) => own.includes(token)).length / docs.length);
      const frequent = share >= fround((config['tokens_freq_ratio_threshold'] ?? 5) * average);
      const light = weight <= fround(fround(config['tokens_weight_threshold'] ?? 0.4) * heaviest);
      return (frequent && light) === (config['only_score_pruned_tokens'] ?? false);
    })
    .map(([token]) => token);
}

function sparse(tokens: Record<string, number>, config: Query | undefined, doc: Doc, corpus: Corpus): Score {
  const scored = config === undefined ? Object.keys(tokens) : kept(tokens, config, corpus);
  const stored = doc.source.sv ?? {};
  return sum(scored.map((token) => (stored[token] === undefined ? undefined : (tokens[token] ?? 0) * stored[token])));
}

function weights(random: Random): Record<string, number> {
  const chosen = random.some(TOKENS, 0.5);
  const entries = [...chosen, 'nope'].map((token): [string, number] => [token, random.int(1, 8) / 2]);
  return Object.fromEntries(entries);
}

const pruning = (random: Random): object => ({
  ...random.maybe(0.8, () => ({ tokens_freq_ratio_threshold: random.int(1, 2) })),
  ...random.maybe(0.8, () => ({ tokens_weight_threshold: random.int(0, 4) / 4 })),
  ...random.maybe(0.3, () => ({ only_score_pruned_tokens: random.chance(0.7) })),
});

export const kinds: Kinds = {
  sparse_vector: {
    make: (random) => ({
      field: 'sv',
      query_vector: weights(random),
      ...random.maybe(0.4, () => ({ prune: true, pruning_config: pruning(random) })),
      ...boost(random),
    }),
    score: (body, doc, corpus) =>
      sparse(body['query_vector'], body['prune'] === true ? (body['pruning_config'] ?? {}) : undefined, doc, corpus),
  },
  weighted_tokens: {
    optionsBelowField: true,
    make: (random) => ({
      sv: {
        tokens: weights(random),
        ...random.maybe(0.4, () => ({ pruning_config: pruning(random) })),
        ...boost(random),
      },
    }),
    score: (body, doc, corpus) => {
      const [, options] = single(body, 'tokens');
      return sparse(options['tokens'], options['pruning_config'], doc, corpus);
    },
  },
};
