// The console's searches against the real server: every way to search that it offers is answered, and explained in its terms.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { type RunningServer, startServer } from '../../../../test/support/server';
import { fusedKinds, searchBody } from './body';
import { firstOfEach, leaves, vectorFields, waysOf, withPassages } from './fields';
import { markWords, partsOf, wordsOf } from './why';

const SPARSE = '.sparse_encoder_model_2';
const DENSE = '.all-minilm-l6-v2';
const TEXTS = ['A person who collects postage stamps.', 'The fear of open spaces.', 'A loaf that is baked from flour.'];
const PROPERTIES = {
  gloss: { type: 'text', copy_to: ['body', 'points'], fields: { raw: { type: 'keyword' } } },
  about: { properties: { title: { type: 'text' }, when: { type: 'date' } } },
  tokens: { type: 'sparse_vector' },
  features: { type: 'rank_features' },
  numbers: { type: 'dense_vector', dims: 384 },
  body: { type: 'semantic_text' },
  points: { type: 'semantic_text', inference_id: '.all-minilm-l6-v2-elasticsearch' },
};
const FIELDS = leaves(PROPERTIES);
const TASKS = new Map([['.all-minilm-l6-v2-elasticsearch', 'text_embedding']]);
const WAYS = waysOf(FIELDS, TASKS);

let server: RunningServer;
beforeAll(async () => {
  server = await startServer();
  const call = async (method: string, path: string, body?: unknown): Promise<void> => {
    const answer = await server.request(method, path, body);
    expect(answer.status, answer.text).toBeLessThan(300);
  };
  await call('POST', `/_ml/trained_models/${DENSE}/deployment/_start?wait_for=started`);
  await call('PUT', '/words', { mappings: { properties: PROPERTIES } });
  const embed = (model_id: string, output_field: string): object => ({
    inference: { model_id, input_output: [{ input_field: 'gloss', output_field }] },
  });
  await call('PUT', '/_ingest/pipeline/all', {
    processors: [embed(SPARSE, 'tokens'), embed(SPARSE, 'features'), embed(DENSE, 'numbers')],
  });
  for (const [id, text] of TEXTS.entries()) {
    await call('PUT', `/words/_doc/${id}?pipeline=all&refresh=true`, { gloss: text, about: { title: `number ${id}` } });
  }
});
afterAll(async () => {
  await server.stop();
});

describe('the console', () => {
  it('offers what the mapping can be searched by', () => {
    expect(WAYS.map(({ kind, fields }) => `${kind}:${fields.join('+')}`)).toEqual([
      'words:gloss+about.title',
      'meaning:tokens',
      'meaning:features',
      'meaning:body',
      'dense:numbers',
      'dense:points',
      'hybrid:',
    ]);
    expect(firstOfEach(WAYS).map(({ kind }) => kind)).toEqual(['words', 'meaning', 'dense', 'hybrid']);
    expect(waysOf(leaves({ n: { type: 'long' } }))).toEqual([]);
    expect(waysOf(leaves({ t: { type: 'match_only_text' } })).map(({ kind }) => kind)).toEqual(['words']);
    expect(withPassages(FIELDS)).toEqual(['gloss', 'about.title', 'body', 'points']);
    expect(vectorFields(FIELDS)).toEqual(['tokens', 'features', 'numbers']);
  });

  it.each(WAYS.map((way) => [`${way.kind} ${way.fields.join('+')}`, way] as const))(
    'searches by %s',
    async (_, way) => {
      const options = {
        ways: WAYS,
        models: { sparse: SPARSE, dense: DENSE },
        marked: withPassages(FIELDS),
        hidden: vectorFields(FIELDS),
        explain: true,
        profile: true,
      };
      const ask = async (more: object): Promise<any> => {
        const body = searchBody(way, 'stamps collected by a philatelist', { ...options, ...more });
        const answer = await server.request('POST', '/words/_search', body);
        expect(answer.status, answer.text).toBe(200);
        return answer.body;
      };
      const found = await ask({});
      const [first] = found.hits.hits;
      expect(first._id).toBe('0');
      expect(Object.keys(first._source)).not.toContain('tokens');
      expect(found.profile.phases.search_in_nanos).toBeGreaterThan(0);
      const parts = partsOf(first._explanation, way.kind === 'hybrid' ? fusedKinds(WAYS) : []);
      const sum = parts.reduce((all, { value }) => all + value, 0);
      if (way.kind === 'hybrid') {
        expect(parts.map(({ kind, rank }) => `${kind ?? ''} ${rank ?? ''}`).sort()).toEqual([
          'dense 1',
          'meaning 1',
          'words 1',
        ]);
        expect(sum).toBeCloseTo(first._score, 4);
      } else if (way.kind !== 'dense') {
        expect(sum).toBeCloseTo(first._score, 3);
        expect(wordsOf(parts)).toContain('stamps');
      }
      expect((await ask({ from: 10 })).hits.hits).toEqual([]);
      expect((await ask({ filter: 'about.title:1' })).hits.hits.map(({ _id }: { _id: string }) => _id)).not.toContain(
        '0',
      );
    },
  );

  it('marks whole words only, whatever their case', () => {
    expect(markWords('Stamps, stamped; STAMPS', ['stamps'])).toEqual(['', 'Stamps', ', stamped; ', 'STAMPS', '']);
    expect(markWords('nothing to mark', [])).toEqual(['nothing to mark']);
    expect(markWords('a+b (c)', ['+', '(c)'])).toHaveLength(3);
  });
});
