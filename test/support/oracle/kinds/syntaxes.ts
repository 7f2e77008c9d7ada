/** Texts in a query syntax. */
import { boost, day, FIELDS, type Query } from '../clauses.js';
import { KEYWORDS, WORDS } from '../corpus.js';
import { evaluate, type Kinds } from '../queries.js';
import type { Random } from '../random.js';

/** The query that each text stands for, kept by the code that wrote both. */
const MEANINGS = new WeakMap<object, Query>();

/** A text of a query syntax beside the query that it stands for. */
interface Written {
  readonly text: string;
  readonly means: Query;
}

function writtenTerm(random: Random, lucene: boolean): Written {
  const word = random.pick(WORDS);
  switch (random.int(0, lucene ? 12 : 3)) {
    case 0: {
      const phrase = `${random.pick(WORDS)} ${random.pick(WORDS)}`;
      return { text: `"${phrase}"`, means: { match_phrase: { t: phrase } } };
    }
    case 1:
      return { text: `${word.slice(0, 2)}*`, means: { prefix: { t: word.slice(0, 2) } } };
    case 2:
      return { text: `${word}~1`, means: { fuzzy: { t: { value: word, fuzziness: 1 } } } };
    case 4:
      return { text: `t2:${word}`, means: { match: { t2: word } } };
    case 5: {
      const pattern = `${word.slice(0, 1)}?*`;
      return { text: `t:${pattern}`, means: { wildcard: { t: pattern } } };
    }
    case 6: {
      const [low, high] = [random.int(-5, 3), random.int(0, 9)];
      const [from, to] = [random.pick(['gt', 'gte']), random.pick(['lt', 'lte'])];
      const open = from === 'gt' ? '{' : '[';
      const close = to === 'lt' ? '}' : ']';
      const means = { range: { n: { [from]: low, [to]: high } } };
      return { text: `n:${open}${String(low)} TO ${String(high)}${close}`, means };
    }
    case 7: {
      const from = day(random);
      const [sign, name] = random.pick([
        ['>', 'gt'],
        ['>=', 'gte'],
        ['<', 'lt'],
        ['<=', 'lte'],
      ] as const);
      return { text: `when:${sign}${from}`, means: { range: { when: { [name]: from } } } };
    }
    case 8: {
      const field = random.pick(FIELDS);
      return { text: `_exists_:${field}`, means: { exists: { field } } };
    }
    case 9:
      return { text: 't:/[ab]+c?/', means: { regexp: { t: '[ab]+c?' } } };
    case 10: {
      const keyword = random.pick(KEYWORDS);
      return { text: `kw:${keyword}`, means: { term: { kw: keyword } } };
    }
    case 11:
      return { text: `n:[${String(random.int(-2, 3))} TO *]`, means: {} };
    default:
      return { text: word, means: { match: { t: word } } };
  }
}

function lucene(random: Random, depth: number): Written {
  const one = (): Written => {
    const nested = depth < 2 && random.chance(0.25);
    const term = nested ? lucene(random, depth + 1) : writtenTerm(random, true);
    const written = nested ? `(${term.text})` : term.text;
    if (Object.keys(term.means).length === 0) {
      const low = Number(/-?\d+/.exec(term.text)?.[0]);
      return { text: term.text, means: { range: { n: { gte: low } } } };
    }
    if (!random.chance(0.2)) return { text: written, means: term.means };
    const factor = random.int(2, 4);
    return { text: `${written}^${String(factor)}`, means: { bool: { must: [term.means], boost: factor } } };
  };
  const parts = random.several(1, 3, one);
  if (random.chance(0.4) && parts.length > 1) {
    const [word, clause] = random.pick([
      [' AND ', 'must'],
      [' && ', 'must'],
      [' OR ', 'should'],
      [' || ', 'should'],
    ] as const);
    return {
      text: parts.map((part) => part.text).join(word),
      means: { bool: { [clause]: parts.map((p) => p.means) } },
    };
  }
  const signs = parts.map((_, n) => random.pick(n === 0 ? ['', '+'] : ['', '+', '-', 'NOT ', '!']));
  const of = (...wanted: string[]): Query[] =>
    parts.filter((_, n) => wanted.includes(signs[n] ?? '')).map((part) => part.means);
  return {
    text: parts.map((part, n) => `${signs[n] ?? ''}${part.text}`).join(' '),
    means: { bool: { should: of(''), must: of('+'), must_not: of('-', 'NOT ', '!') } },
  };
}

function simple(random: Random, depth: number): Written {
  const parts = random.several(1, 3, () => {
    if (depth >= 2 || random.chance(0.7)) return writtenTerm(random, false);
    const inner = simple(random, depth + 1);
    return { ...inner, text: `(${inner.text})` };
  });
  const [word, clause] = random.pick([
    [' + ', 'must'],
    [' | ', 'should'],
  ] as const);
  const [only] = parts;
  if (parts.length === 1 && only) return only;
  return { text: parts.map((part) => part.text).join(word), means: { bool: { [clause]: parts.map((p) => p.means) } } };
}

function written(random: Random, body: object, made: Written): Query {
  const whole = { ...body, query: made.text, ...boost(random) };
  MEANINGS.set(whole, made.means);
  return whole;
}

export const kinds: Kinds = {
  query_string: {
    make: (random) => written(random, { default_field: 't' }, lucene(random, 0)),
    score: (body, doc, corpus) => evaluate(MEANINGS.get(body) ?? {}, doc, corpus),
  },
  simple_query_string: {
    make: (random) => written(random, { fields: ['t'] }, simple(random, 0)),
    score: (body, doc, corpus) => evaluate(MEANINGS.get(body) ?? {}, doc, corpus),
  },
};
