// The console's searches against the real server: every way to search that it offers is answered, and explained in its terms.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { type RunningServer, startServer } from '../../../../test/support/server';
import { fieldsFor } from '../../../cli/src/documents/file-mapping';
import { filterProblem } from '../../../engine/src/diagnostics/named-fields';
import { shown, titleFieldOf } from '../../../cli/src/documents/shown-document';
import { sentences } from '../lib/api';
import { fusedLists, searchBody } from './body';
import { type Way, firstOfEach, leaves, vectorFields, waysOf, withPassages } from './fields';
import { type Hit, passageOf } from './results';
import { fromFirstWord, markWords, partsOf, saidAs, telling, withoutEmptyMarks, wordsOf } from './why';

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
/** A text as docs/hybrid-search.md maps it, beside texts as the console does. */
const ONE_LINE = {
  summary: { type: 'text', fields: { semantic: { type: 'semantic_text', inference_id: '.hybrid' } } },
  ...fieldsFor([], ['gloss'], 'hybrid'),
};
const ONE_LINE_FIELDS = leaves(ONE_LINE);
const ONE_LINE_WAYS = waysOf(ONE_LINE_FIELDS);
const INDICES = [
  { name: 'words', fields: FIELDS, ways: WAYS, lists: ['dense', 'meaning', 'words'] },
  {
    name: 'texts',
    fields: ONE_LINE_FIELDS,
    ways: ONE_LINE_WAYS,
    // Two fields, each with two kinds of vectors; parts of one kind are one.
    lists: ['dense', 'meaning', 'words'],
  },
];

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
  await call('PUT', '/texts', { mappings: { properties: ONE_LINE } });
  for (const [id, text] of TEXTS.entries()) {
    await call('PUT', `/texts/_doc/${id}?refresh=true`, {
      gloss: text,
      summary: text,
      about: { title: `number ${id}` },
    });
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
    for (const type of ['match_only_text', 'search_as_you_type']) {
      expect(waysOf(leaves({ t: { type } })).map(({ kind }) => kind)).toEqual(['words']);
    }
    expect(withPassages(FIELDS)).toEqual(['gloss', 'about.title', 'body', 'points']);
    expect(vectorFields(FIELDS)).toEqual(['tokens', 'features', 'numbers']);
  });

  it('asks in one line where every vector is one of a semantic_text', () => {
    const hybrid = (ways: typeof WAYS): any => searchBody({ kind: 'hybrid', type: 'fused', fields: [] }, 'x', { ways });
    expect(hybrid(ONE_LINE_WAYS)).toEqual({
      retriever: { linear: { query: 'x' } },
      size: 10,
    });
    const filtered: any = searchBody({ kind: 'hybrid', type: 'fused', fields: [] }, 'x', {
      ways: ONE_LINE_WAYS,
      filter: 'a:b',
    });
    const filter = [{ query_string: { query: 'a:b' } }];
    expect(filtered.retriever.linear).toEqual({ query: 'x', filter });
    const lists = hybrid(WAYS).retriever.linear.retrievers;
    expect(lists.map(({ weight, normalizer }: any) => [weight, normalizer])).toEqual([
      [1, 'zscore'],
      [0.7, 'zscore'],
      [1.5, 'zscore'],
      [1, 'rarity'],
    ]);
    expect(fusedLists(ONE_LINE_WAYS).map(({ kind, way }) => `${kind} ${way?.fields.join('+') ?? ''}`)).toEqual([
      'words summary+gloss',
      'meaning meaning',
      'dense meaning',
      'meaning summary.semantic',
      'dense summary.semantic',
      'words ',
    ]);
    // A field of the hybrid endpoint is known by its name, by the endpoint's task, or by its first document.
    const known = (property: object, task?: string): string[] =>
      waysOf(
        leaves({ f: { type: 'semantic_text', ...property } }),
        new Map(task === undefined ? [] : [['own', task]]),
      ).map(({ kind }) => kind);
    expect(known({ inference_id: '.hybrid' })).toEqual(['meaning', 'dense', 'hybrid']);
    expect(known({ inference_id: 'own' }, 'hybrid_embedding')).toEqual(['meaning', 'dense', 'hybrid']);
    expect(known({ inference_id: 'own', model_settings: { task_type: 'hybrid_embedding' } })).toHaveLength(3);
    expect(known({ inference_id: 'own' }, 'text_embedding')).toEqual(['dense']);
    expect(known({})).toEqual(['meaning']);
  });

  it.each(
    INDICES.flatMap((index) =>
      index.ways.map((way) => [index.name, `${way.kind} ${way.fields.join('+')}`, way, index] as const),
    ),
  )('searches %s by %s', async (name, _, way, { fields, ways, lists }) => {
    const options = {
      ways,
      models: { sparse: SPARSE, dense: DENSE },
      marked: withPassages(fields),
      hidden: vectorFields(fields),
      explain: true,
      profile: true,
    };
    const ask = async (more: object): Promise<any> => {
      const body = searchBody(way, 'stamps collected by a philatelist', { ...options, ...more });
      const answer = await server.request('POST', `/${name}/_search`, body);
      expect(answer.status, answer.text).toBe(200);
      return answer.body;
    };
    const found = await ask({});
    const [first] = found.hits.hits;
    expect(first._id).toBe('0');
    expect(Object.keys(first._source)).not.toContain('tokens');
    expect(found.profile.phases.search_in_nanos).toBeGreaterThan(0);
    expect(found.profile.phases.explain_in_nanos).toBeGreaterThan(0);
    const kinds = fusedLists(ways).map(({ kind }) => kind);
    const parts = partsOf(first._explanation, way.kind === 'hybrid' ? kinds : []);
    const sum = parts.reduce((all, { value }) => all + value, 0);
    if (way.kind === 'hybrid') {
      expect(parts.map(({ kind }) => kind ?? '').sort()).toEqual(lists);
      expect(sum).toBeCloseTo(first._score, 4);
    } else if (way.kind !== 'dense') {
      expect(sum).toBeCloseTo(first._score, 3);
      expect(wordsOf(parts)).toContain('stamps');
    }
    expect((await ask({ from: 10 })).hits.hits).toEqual([]);
    expect((await ask({ filter: 'about.title:1' })).hits.hits.map(({ _id }: { _id: string }) => _id)).not.toContain(
      '0',
    );
  });

  it('runs no model to mark words where sparse vectors are searched', () => {
    const way = WAYS.find(({ kind }) => kind === 'meaning') as Way;
    const { highlight } = searchBody(way, 'x', { ways: WAYS, marked: ['gloss', 'body'], passages: ['body'] });
    const marks = { number_of_fragments: 2, order: 'score' };
    expect(highlight).toMatchObject({
      fields: { gloss: { ...marks, highlight_query: { match: { gloss: 'x' } } }, body: marks },
    });
    const words = searchBody(WAYS[0] as Way, 'x', { ways: WAYS, marked: ['gloss'] });
    expect(words['highlight']).toMatchObject({ fields: { gloss: marks } });
    expect(JSON.stringify(words)).not.toContain('highlight_query');
  });

  it('looks for passages in the beginning of a book only', () => {
    const body = searchBody(WAYS[0] as Way, 'x', { ways: WAYS, marked: ['gloss'] });
    expect(body['highlight']).toMatchObject({ max_analyzed_offset: 500_000 });
  });

  it('marks whole words only, whatever their case', () => {
    expect(markWords('Stamps, stamped; STAMPS', ['stamps'])).toEqual(['', 'Stamps', ', stamped; ', 'STAMPS', '']);
    expect(markWords('nothing to mark', [])).toEqual(['nothing to mark']);
    expect(markWords('a+b (c)', ['+', '(c)'])).toHaveLength(3);
  });

  it('marks and names what a hit is about, not the words and signs of every text', () => {
    const weights = [1, 1] as const;
    const parts = [
      { label: 'to', value: 9, weights, word: 'to' },
      { label: '.', value: 8, weights, word: '.' },
      { label: 'pain', value: 7, weights, word: 'aching' },
      { label: 'help', value: 0.01, weights, word: 'rest' },
    ];
    expect(telling(parts).map(({ label }) => label)).toEqual(['pain', 'help']);
    expect(wordsOf(parts)).toEqual(['aching']);
    expect(telling(parts.slice(0, 2))).toHaveLength(2);
  });

  it('names parts by words, not by stems and pieces', () => {
    const text = 'Sore muscles make nobody happy. Warming up helps.';
    const part = (label: string, more: object = {}) => ({ label, value: 1, word: label, ...more });
    expect(saidAs(part('muscl'), text)).toBe('muscles');
    expect(saidAs(part('happi'), text)).toBe('happy');
    expect(saidAs(part('up'), text)).toBe('up');
    expect(saidAs(part('absent'), text)).toBe('absent');
    expect(saidAs(part('pain', { weights: [1, 1], word: 'aching' }), text)).toBe('pain');
    expect(saidAs(part('##ing (-ing)', { weights: [1, 1], word: 'warming' }), text)).toBe('warming');
  });

  it('begins a passage where it was found', () => {
    const long = `${'Nothing to see here. '.repeat(20)}Lava flows. The end.`;
    expect(fromFirstWord(long, ['lava'])).toBe('… Lava flows. The end.');
    expect(fromFirstWord(long, ['nowhere'])).toBe(long);
    expect(fromFirstWord('Short lava.', ['lava'])).toBe('Short lava.');
    expect(fromFirstWord(`${'word '.repeat(100)}lava`, ['lava'])).toMatch(/^… (word ){10,18}lava$/);
    expect(withoutEmptyMarks('<em>The</em> <em>lava</em><em>.</em>')).toBe('The <em>lava</em>.');
  });

  it('shows what was meant, rather than words that every text has', () => {
    const text = 'Notes of a year\n\nApril brought slugs.';
    const passages = { text: ['Notes <em>of</em> a year'], meaning: [text] };
    const hit = { document: shown('x', { text }), passages } as unknown as Hit;
    expect(passageOf(hit, 'words')).toBe('Notes of a year');
    expect(passageOf(hit, 'hybrid')).toBe(text);
    const found = { ...hit, passages: { ...passages, text: ['April brought <em>slugs</em>.'] } };
    expect(passageOf(found, 'hybrid')).toBe('April brought <em>slugs</em>.');
    const both = { ...hit, passages: { title: ['Notes <em>of</em> it'], text: ['A year <em>of</em> <em>slugs</em>'] } };
    expect(passageOf(both, 'words')).toBe('A year of <em>slugs</em>');
  });

  it('says of a filter that cannot be read what is wrong with it', async () => {
    const problem = async (filter: string): Promise<string> => {
      const body = searchBody(WAYS[0] as Way, 'x', { ways: WAYS, filter });
      return filterProblem(sentences((await server.request('POST', '/words/_search', body)).body), filter);
    };
    const early = 'ends too early: is a value, a quote or a bracket missing?';
    for (const filter of ['(gloss:a', 'gloss:', 'gloss:"a', 'gloss:[1 TO', 'a AND']) {
      expect(await problem(filter)).toBe(`The filter “${filter}” ${early}`);
    }
    expect(await problem('gloss:a)')).toBe('The filter “gloss:a)” cannot be read: “)” is not expected there.');
    expect(await problem('AND a')).toBe('The filter “AND a” cannot be read: “AND” is not expected there.');
    expect(await problem('gloss^x')).toBe('The filter “gloss^x” cannot be read: “x” is not expected there.');
    expect(filterProblem('no such index [x]', 'a:b')).toBe('no such index [x]');
  });

  it('gives a document a title that people read', () => {
    const of = (source: object): unknown[] => {
      const { title, titleField, textField } = shown('a1b2', source as never);
      return [title, titleField, textField];
    };
    expect(of({ title: 'A', text: 'b c' })).toEqual(['A', 'title', 'text']);
    expect(of({ note: 'Some words that are long' })).toEqual(['Some words that are long', undefined, 'note']);
    expect(of({ url: 'https://x.example/a', city: 'Paris' })).toEqual(['Paris', 'city', undefined]);
    expect(of({ n: 7 })).toEqual(['a1b2', undefined, undefined]);
    expect(of({ text: 'Our allotment\n\nIn March the ground was frozen.' })[0]).toBe('Our allotment');
    // Paragraphs stay apart, words of a list stay in their line.
    expect(shown('x', { text: ['First one.', 'And a second one that is rather longer.'] }).text).toContain('.\n\nAnd');
    expect(shown('x', { text: ['a b', 'c'] }).text).toBe('a b, c');
    // Where no field is called a title, one whose values differ from document to document is taken for it, and not one that they share.
    const recipes = ['Lentil soup', 'Apple cake', 'Flat bread'].map((Recipe, at) => {
      return { Cuisine: 'French', Added: `2024-05-0${at + 1}`, Recipe, Steps: `Take a pan, and make ${Recipe} in it.` };
    });
    const field = titleFieldOf(recipes);
    expect(field).toBe('Recipe');
    expect(recipes.map((recipe) => shown('x', recipe, [], field).title)).toEqual([
      ...['Lentil soup', 'Apple cake', 'Flat bread'],
    ]);
    expect(shown('x', { title: 'T', ...recipes[0] }, [], field).title).toBe('T');
    // A question is a title before the name of who asked it, and so is what differs from document to document.
    expect(of({ author: { name: 'Ana' }, question: 'Why?', answer: 'So it is.' })[0]).toBe('Why?');
    expect(shown('x', { by: { name: 'Ana' }, ...recipes[0] }, [], field).title).toBe('Lentil soup');
    expect(of({ author: { name: 'Ana' }, text: 'So it is.' })[0]).toBe('Ana');
    // What is there to read is no title of itself.
    const notes = [{ note: 'One short note' }, { note: 'Another one' }];
    expect(shown('x', notes[0] ?? {}, [], titleFieldOf(notes)).titleField).toBeUndefined();
    expect(titleFieldOf(recipes.slice(0, 1))).toBeUndefined();
  });
});
