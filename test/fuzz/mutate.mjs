// Makes bad inputs out of good ones: JSON with its structure in mind, texts, bytes, paths and parameters.

/** Numbers at the edges of what numbers are kept in. */
const NUMBERS = [
  ...[
    '0',
    '-0',
    '-1',
    '1',
    '2',
    '127',
    '128',
    '255',
    '256',
    '32767',
    '32768',
    '65535',
    '65536',
    '2147483647',
    '2147483648',
  ],
  ...['-2147483648', '-2147483649', '4294967295', '4294967296', '9007199254740993', '9223372036854775807'],
  ...['9223372036854775808', '-9223372036854775808', '-9223372036854775809', '18446744073709551615'],
  ...[
    '18446744073709551616',
    '1e400',
    '-1e400',
    '1e-400',
    '1.5',
    '0.1',
    '3.4028236e38',
    '-0.0',
    '1E1',
    '123456789012345678901234567890',
  ],
];

/** Words and syntax that mean something somewhere. */
const WORDS = [
  ...[
    '',
    ' ',
    '\u0000',
    '*',
    '?',
    '**',
    '_all',
    '_id',
    '_source',
    '_index',
    '_score',
    '_doc',
    '_none',
    '.',
    '..',
    '...',
    '/',
    '\\',
  ],
  ...[
    '__proto__',
    'constructor',
    'prototype',
    'toString',
    'hasOwnProperty',
    'null',
    'true',
    'false',
    'NaN',
    'Infinity',
    '-Infinity',
  ],
  ...[
    'a.b',
    'a..b',
    '.a',
    'a.',
    'n',
    'v',
    'title',
    'tag',
    'now',
    'now-1d/d',
    '2020-01-01||+1M/d',
    'now+9999999999y',
    '||',
    'now/',
  ],
  ...[
    '-1',
    '0',
    '1d',
    '0ms',
    '99999999999999999999d',
    '1kb',
    '100%',
    '-1%',
    '75%',
    '3<90%',
    'AND',
    'OR NOT',
    'a AND',
    '(((',
    ')))',
  ],
  ...[
    '"',
    '"a b"~2',
    'a~',
    'a~9',
    '/a(b/',
    '[a TO',
    '{1 TO *]',
    'title:',
    ':',
    'a^',
    'a^-1',
    '+-+-',
    '<>',
    '<1-5>',
    '~(a)',
    'a{1,99999}',
  ],
  ...[
    '(a+)+$',
    '[[:alpha:]',
    '\\p{L}',
    '\\',
    '(?i)a',
    'a|',
    '@',
    '#',
    '&&',
    '\ud800',
    '\ufeff',
    '\u202e',
    'İ',
    'ß',
    '👩‍👩‍👧‍👦',
  ],
  ...[
    'yyyy',
    'strict_date',
    'epoch_millis',
    'UTC',
    '+25:00',
    'Europe/Nowhere',
    'keyword',
    'text',
    'nested',
    'object',
    'dense_vector',
  ],
  ...[
    'sparse_vector',
    'semantic_text',
    'alias',
    'geo_point',
    'wait_for',
    'painless',
    'params._source',
    '{{a}}',
    '{{{a}}}',
    '{{',
    '%{a}',
  ],
];

/** A text that is not the one given. */
export function text(random, given = '') {
  switch (random.below(9)) {
    case 0:
      return random.pick(WORDS);
    case 1:
      return given + random.pick(WORDS);
    case 2:
      return random.pick(WORDS) + given;
    case 3:
      return given.slice(0, random.below(given.length + 1));
    case 4:
      return random.pick(NUMBERS);
    case 5: {
      const at = random.below(given.length + 1);
      return (
        given.slice(0, at) +
        String.fromCodePoint(random.pick([random.below(128), random.below(0xd800), 0x1f600])) +
        given.slice(at)
      );
    }
    case 6:
      return (given || 'a').repeat(1 + random.below(random.chance(0.05) ? 3000 : 8));
    case 7:
      return random.pick(WORDS) + random.pick(WORDS) + random.pick(WORDS);
    default:
      return random
        .pick(['a', '(', '[', '"', '\\', '.', '*', '{{', '<a>', '%', 'é'])
        .repeat(random.pick([2, 20, 300, 1001]));
  }
}

/**
 * JSON that is held as text for numbers, so that those survive which JavaScript cannot hold: an object with `raw`.
 */
class Raw {
  constructor(raw) {
    this.raw = raw;
  }
}

/** Any value. */
function anything(random, others) {
  switch (random.below(10)) {
    case 0:
      return null;
    case 1:
      return random.chance(0.5);
    case 2:
    case 3:
      return new Raw(random.pick(NUMBERS));
    case 4:
    case 5:
      return text(random);
    case 6:
      return [];
    case 7:
      return {};
    case 8:
      return others.length === 0 ? [null] : structured(random.pick(others));
    default: {
      // Deep, but within what a parser of requests may be asked.
      let value = random.pick([1, 'a', {}, []]);
      const key = random.pick(['bool', 'must', 'a', 'properties', 'aggs', 'query', 'nested', 'span_not', 'retriever']);
      const inList = random.chance(0.5);
      for (let depth = random.pick([3, 30, 200, 2000]); depth > 0; depth -= 1)
        value = inList ? [value] : { [key]: value };
      return value;
    }
  }
}

/** A copy whose parts can be changed. */
function structured(value) {
  if (value instanceof Raw) return value;
  if (Array.isArray(value)) return value.map(structured);
  if (value === null || typeof value !== 'object') return value;
  const copy = Object.create(null);
  for (const [key, one] of Object.entries(value)) copy[key] = structured(one);
  return copy;
}

/** Every place in a value: its holder and its key. */
function places(value, found = [], depth = 0) {
  if (value === null || typeof value !== 'object' || value instanceof Raw || depth > 60) return found;
  for (const key of Array.isArray(value) ? value.keys() : Object.keys(value)) {
    found.push([value, key]);
    places(value[key], found, depth + 1);
  }
  return found;
}

/**
 * JSON text of a value with some of its parts changed.
 *
 * @param others values of other requests, parts of which may be put into this one
 */
export function json(random, value, others) {
  let root = structured(value);
  for (let changes = 1 + random.below(3); changes > 0; changes -= 1) {
    const all = places(root);
    if (all.length === 0 || random.chance(0.02)) {
      root = anything(random, others);
      continue;
    }
    const [holder, key] = random.pick(all);
    const old = holder[key];
    const put = (name, one) => (Array.isArray(holder) ? holder.push(one) : (holder[name] = one));
    switch (random.below(10)) {
      case 0:
        if (Array.isArray(holder)) holder.splice(key, 1);
        else delete holder[key];
        break;
      case 1:
        put(text(random, String(key)), old);
        break;
      case 2:
        if (!Array.isArray(holder)) delete holder[key];
        put(text(random, String(key)), old);
        break;
      case 3: {
        const [from, name] = random.pick(places(structured(random.pick(others) ?? {})).concat([[{ a: 1 }, 'a']]));
        holder[key] = from[name];
        break;
      }
      case 4:
        holder[key] = [old, structured(old)];
        break;
      case 5:
        holder[key] = { [random.pick(WORDS)]: old };
        break;
      case 6:
      case 7:
        holder[key] =
          typeof old === 'string'
            ? text(random, old)
            : typeof old === 'number' || old instanceof Raw
              ? new Raw(random.pick(NUMBERS))
              : anything(random, others);
        break;
      default:
        holder[key] = anything(random, others);
    }
  }
  let written = write(root);
  // A key twice, which no object of JavaScript has.
  if (random.chance(0.03)) written = written.replace(/"(\w+)":/, (match) => `${match}null,${match}`);
  return written;
}

/** JSON text, without recursion: values may be deeper than the stack. */
function write(root) {
  const out = [];
  const todo = [root];
  while (todo.length > 0) {
    const next = todo.pop();
    if (typeof next === 'function') out.push(next());
    else if (next instanceof Raw) out.push(next.raw);
    else if (next === null || typeof next !== 'object') out.push(JSON.stringify(next) ?? 'null');
    else {
      const isList = Array.isArray(next);
      const keys = isList ? [...next.keys()] : Object.keys(next);
      out.push(isList ? '[' : '{');
      todo.push(() => (isList ? ']' : '}'));
      for (const [at, key] of keys.reverse().entries()) {
        if (at < keys.length - 1) todo.push(next[key], () => (isList ? ',' : `,${JSON.stringify(String(key))}:`));
        else todo.push(next[key], () => (isList ? '' : `${JSON.stringify(String(key))}:`));
      }
    }
  }
  return out.join('');
}

/** Bytes with some of them changed, cut off, or put in from elsewhere. */
export function bytes(random, given, others) {
  let data = Buffer.from(given);
  for (let changes = 1 + random.below(4); changes > 0; changes -= 1) {
    const at = random.below(data.length + 1);
    switch (random.below(7)) {
      case 0:
        if (at < data.length) data[at] ^= 1 << random.below(8);
        break;
      case 1:
        data = data.subarray(0, at);
        break;
      case 2:
        data = Buffer.concat([data.subarray(0, at), data.subarray(Math.min(at + 1 + random.below(8), data.length))]);
        break;
      case 3: {
        const other = random.pick(others) ?? Buffer.from('{}');
        const from = random.below(other.length);
        data = Buffer.concat([data.subarray(0, at), other.subarray(from, from + random.below(200)), data.subarray(at)]);
        break;
      }
      case 4:
        data = Buffer.concat([
          data.subarray(0, at),
          Buffer.from(random.pick([...WORDS, ...NUMBERS])),
          data.subarray(at),
        ]);
        break;
      case 5: {
        const end = Math.min(at + 1 + random.below(60), data.length);
        data = Buffer.concat([data.subarray(0, end), data.subarray(at, end), data.subarray(end)]);
        break;
      }
      default:
        if (at < data.length) data[at] = random.pick([0, 0x0a, 0x22, 0x5c, 0x7b, 0x7d, 0x80, 0xc0, 0xff]);
    }
  }
  return data;
}
