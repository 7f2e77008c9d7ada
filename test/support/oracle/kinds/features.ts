/** Features of documents. */
import { boost, day, type Query, valuesOf } from '../clauses.js';
import { DAY, type Doc } from '../corpus.js';
import type { Kinds } from '../queries.js';
import type { Score } from '../words.js';

function rankFeature(body: Query, doc: Doc): Score {
  const [field = '', token = ''] = String(body['field']).split('.');
  const value = field === 'rank' ? doc.source.rank : doc.source.rf?.[token];
  if (value === undefined) return undefined;
  if (body['log']) return Math.log(body['log'].scaling_factor + value);
  if (body['linear']) return value;
  const { pivot, exponent } = body['sigmoid'] ?? { pivot: body['saturation'].pivot, exponent: 1 };
  return value ** exponent / (value ** exponent + pivot ** exponent);
}

export const kinds: Kinds = {
  rank_feature: {
    make: (random) => {
      const functions = [
        { saturation: { pivot: random.int(1, 50) } },
        { log: { scaling_factor: random.int(1, 5) } },
        { sigmoid: { pivot: random.int(1, 50), exponent: random.int(1, 8) / 4 } },
        { linear: {} },
      ];
      return { field: random.pick(['rank', 'rf.w1']), ...random.pick(functions), ...boost(random) };
    },
    score: rankFeature,
  },
  distance_feature: {
    make: (random) => ({
      field: 'when',
      origin: day(random),
      pivot: `${String(random.int(1, 20))}d`,
      ...boost(random),
    }),
    score: (body, doc) => {
      const pivot = parseInt(body['pivot'], 10) * DAY;
      const [date] = valuesOf(doc, body['field']);
      return date === undefined ? undefined : pivot / (pivot + Math.abs(Number(date) - Date.parse(body['origin'])));
    },
  },
};
