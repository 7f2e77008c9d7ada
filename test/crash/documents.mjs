// The documents of the workload, the queries that are asked of them, and a naive evaluator of those queries.

const WORDS = 'red green blue amber black white north south east west stone river cloud bird fish'.split(' ');
const TOKENS = Array.from({ length: 12 }, (_, n) => `token${n}`);

/** The names of the fields that are searched; an index of the committed old format has other ones. */
export const SHAPES = {
  current: { text: 'text', vector: 'v', keyword: 'kw', owner: 'owner', rows: 'rows' },
  old: { text: 'title', vector: 'tokens' },
};

/** The mapping that every index of the workload is created with. */
export const PROPERTIES = {
  owner: { type: 'keyword' },
  kw: { type: 'keyword' },
  n: { type: 'integer' },
  text: { type: 'text' },
  v: { type: 'sparse_vector' },
  // Objects are documents beside their own: they come, go, and are found with it.
  rows: { type: 'nested', properties: { word: { type: 'keyword' }, n: { type: 'integer' } } },
};

/** What a mapping says of a field whose name tells its type: `d_long_3`, `m_keyword_1`. */
export function typeOfName(name) {
  return /^[dmu]_([a-z]+)_\d+$/.exec(name)?.[1];
}

/** A vector of one to four tokens. */
function vector(random) {
  const tokens = {};
  for (let left = 1 + random.below(4); left > 0; left -= 1) tokens[random.pick(TOKENS)] = (1 + random.below(40)) / 8;
  return tokens;
}

/** None to three objects of a nested field. */
function rows(random) {
  return Array.from({ length: random.below(4) }, () => ({ word: random.pick(WORDS), n: random.below(4) }));
}

/** A document's source, as an object whose JSON is the text that is sent. */
export function makeSource(random, shape, owner) {
  const words = Array.from({ length: 1 + random.below(5) }, () => random.pick(WORDS)).join(' ');
  const names = SHAPES[shape];
  const source = { n: random.below(1000), [names.text]: words, [names.vector]: vector(random) };
  if (names.keyword !== undefined) source[names.keyword] = `k${random.below(6)}`;
  if (names.owner !== undefined) source[names.owner] = owner;
  if (names.rows !== undefined) source[names.rows] = rows(random);
  return source;
}

/** A field that the mapping may not know yet, `[name, value]`. */
export function dynamicField(random) {
  return random.pick([
    [`d_long_${random.below(30)}`, random.below(100)],
    [`d_text_${random.below(30)}`, random.pick(WORDS)],
    [`d_boolean_${random.below(30)}`, random.chance(0.5)],
  ]);
}

/** The members of a partial update. */
export function makePatch(random, shape) {
  const names = SHAPES[shape];
  return random.pick([
    ...(names.rows === undefined ? [] : [{ [names.rows]: rows(random) }]),
    { n: random.below(1000) },
    { [names.text]: random.pick(WORDS), n: 1000 + random.below(1000) },
    { [names.text]: `${random.pick(WORDS)} ${random.pick(WORDS)}` },
  ]);
}

/** What an update makes of a source: top-level members are replaced or appended. */
export function patched(source, patch) {
  return JSON.stringify({ ...JSON.parse(source), ...patch });
}

/** One query of each kind that the fields allow. */
export function makeQueries(random, shape) {
  const names = SHAPES[shape];
  const from = random.below(800);
  const queries = [
    { match: { [names.text]: random.pick(WORDS) } },
    { range: { n: { gte: from, lt: from + 300 } } },
    {
      sparse_vector: { field: names.vector, query_vector: { [random.pick(TOKENS)]: 1.5, [random.pick(TOKENS)]: 0.5 } },
    },
  ];
  if (names.keyword !== undefined) queries.push({ term: { [names.keyword]: `k${random.below(6)}` } });
  if (names.rows !== undefined) {
    // Both of one object.
    const [word, n] = [random.pick(WORDS), random.below(4)];
    const filter = [{ term: { [`${names.rows}.word`]: word } }, { range: { [`${names.rows}.n`]: { gte: n } } }];
    queries.push({ nested: { path: names.rows, query: { bool: { filter } } } });
  }
  return queries;
}

/** Whether a source matches a query of {@link makeQueries}, read off its JSON without any index. */
export function matches(query, source) {
  const [[kind, body]] = Object.entries(query);
  if (kind === 'sparse_vector')
    return Object.keys(body.query_vector).some((token) => token in (source[body.field] ?? {}));
  if (kind === 'nested') {
    const inside = (object, clause) => {
      const [[inner, of]] = Object.entries(clause);
      const [[path, value]] = Object.entries(of);
      return matches({ [inner]: { [path.slice(body.path.length + 1)]: value } }, object);
    };
    return (source[body.path] ?? []).some((object) => body.query.bool.filter.every((clause) => inside(object, clause)));
  }
  const [[field, wanted]] = Object.entries(body);
  const value = source[field];
  if (value === undefined) return false;
  if (kind === 'match') return value.split(' ').includes(wanted);
  if (kind === 'term') return value === wanted;
  return value >= wanted.gte && value < (wanted.lt ?? Infinity);
}
