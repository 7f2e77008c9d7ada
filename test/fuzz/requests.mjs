// Bad requests by number: the same seed and number always make the same one.
import { readFileSync, readdirSync } from 'node:fs';

import { ENDPOINTS, parameter } from '@sparrow-search/server';

import { Random } from '../crash/random.mjs';
import { bytes, json, text } from './mutate.mjs';
import { SEEDS } from './seeds.mjs';

const RECORDED = new URL('../fixtures/recorded/', import.meta.url);
/** Times that a request may wait for: none that is longer than a test of whether it hangs. */
// −1 is for ever where something is waited for.
const TIMES = ['0', '1ms', '50ms', '1s', '1S', '1', 'x', '', '999999999999999999999s', '1.5s', '-5s', '1micros'];
const NAMES = [
  'books',
  'b',
  '*',
  '_all',
  'bo*',
  'none',
  'books,none',
  '-books',
  '<books-{now/d}>',
  '.',
  'Ä',
  'a'.repeat(300),
];
const METHODS = ['GET', 'POST', 'PUT', 'DELETE', 'HEAD', 'OPTIONS', 'PATCH'];
/** Parameters whose waiting is what they are for. */
const WAITING = new Set(['wait_for_timelines', 'wait_for_completion_timeout']);

/** Every good request there is: those of SEEDS, and those that were recorded of other servers. */
export function corpus() {
  const recorded = readdirSync(RECORDED)
    .filter((name) => name.endsWith('.jsonl'))
    .flatMap((name) => readFileSync(new URL(name, RECORDED), 'utf8').split('\n'))
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line).request)
    .filter(({ method, path }) => typeof path === 'string' && METHODS.includes(method));
  const all = [...SEEDS, ...recorded].map(({ method, path, body, text: lines }) => ({
    method,
    path,
    // What was recorded as a text is lines of JSON.
    ...(typeof body === 'string' ? { text: body } : body === undefined || body === null ? {} : { body }),
    ...(lines === undefined ? {} : { text: lines }),
  }));
  // A path a time for each row of the route table, so that none is left out.
  const rows = ENDPOINTS.map(({ method, path, params }) => ({ method, path, params }));
  return { all, rows, bodies: all.flatMap(({ body }) => (body === undefined ? [] : [body])) };
}

/** The request with this number. */
export function requestOf({ all, rows, bodies }, seed, number) {
  const random = Random.of(seed, number);
  // Every route gets its turn, whatever chance says.
  const row = number % 3 === 0 ? rows[Math.floor(number / 3) % rows.length] : undefined;
  const from =
    row === undefined
      ? random.pick(all)
      : { method: row.method, path: row.path, body: random.chance(0.5) ? random.pick(bodies) : undefined };
  let { method } = from;
  let path = pathOf(random, from.path);
  if (random.chance(0.03)) method = random.pick(METHODS);
  path = withParameters(random, path, row?.params ?? []);
  const headers = {};
  const isLines = from.text !== undefined;
  let body;
  const others = bodies;
  if (isLines)
    body = random.chance(0.5)
      ? bytes(random, Buffer.from(from.text), [Buffer.from(JSON.stringify(random.pick(bodies)))])
      : Buffer.from(lines(random, from.text, others));
  else if (from.body !== undefined) {
    body = random.chance(0.75)
      ? Buffer.from(json(random, from.body, others))
      : bytes(random, Buffer.from(JSON.stringify(from.body)), [Buffer.from(JSON.stringify(random.pick(bodies)))]);
  } else if (random.chance(0.1))
    body = Buffer.from(
      random.pick(['', '{}', '[]', 'null', '1', '"a"', '{', '\0', '---\na: [*b]\n', '{"a":1}{"b":2}']),
    );
  if (body !== undefined) headers['content-type'] = isLines ? 'application/x-ndjson' : 'application/json';
  if (random.chance(0.06)) badHeader(random, headers);
  return { method, path, headers, ...(body === undefined ? {} : { body }) };
}

/** Lines of JSON, one of them changed. */
function lines(random, text, others) {
  const all = text.split('\n');
  for (let changes = 1 + random.below(3); changes > 0; changes -= 1) {
    const at = random.below(all.length);
    try {
      all[at] = json(random, JSON.parse(all[at]), others);
    } catch {
      all[at] = random.pick(all);
    }
  }
  if (random.chance(0.1)) all.splice(random.below(all.length), 1);
  return all.join(random.chance(0.05) ? '\r\n' : '\n');
}

function pathOf(random, path) {
  const filled = path.replaceAll(/\{(\w+)\}/g, (_, name) => {
    const usual = { index: NAMES, id: ['1', '2', 'x', ' '], target: ['copy', 'books'], name: ['b', 'all', 't', '*'] };
    if (random.chance(0.2)) return escaped(random, text(random, 'a'));
    return escaped(
      random,
      random.pick(
        usual[name] ?? [
          'books',
          '_all',
          'p',
          'r',
          's',
          'mine',
          'up',
          't',
          '1',
          '.elser_model_2',
          '*',
          'docs,store',
          'sparse_embedding',
        ],
      ),
    );
  });
  if (!random.chance(0.05)) return filled;
  const at = 1 + random.below(filled.length);
  return (
    filled.slice(0, at) +
    random.pick(['%', '%00', '%2f', '%2e%2e', '//', '/../', '%ff', '%C3%28', ';', '?', '&', '%0d%0a', '+', '*', '%']) +
    filled.slice(at)
  );
}

/** As it goes into a path: what cannot be sent at all is escaped, some more is not. */
function escaped(random, part) {
  const safe = Buffer.from(part, 'utf8').toString('utf8').slice(0, 2000);
  return random.chance(0.9)
    ? encodeURIComponent(safe)
    : safe.replaceAll(/[^!-~]|[#?]/gu, (one) => encodeURIComponent(one));
}

function withParameters(random, path, own) {
  const [head, query = ''] = path.split('?', 2);
  const pairs = query === '' ? [] : query.split('&');
  if (random.chance(0.5)) {
    for (let more = random.below(3); more > 0; more -= 1) {
      const name = random.chance(0.85)
        ? (random.pick(own) ?? random.pick(['pretty', 'human', 'filter_path', 'format', 'error_trace', 'source', 'q']))
        : text(random, 'size').slice(0, 50);
      if (WAITING.has(name)) continue;
      pairs.push(`${encodeURIComponent(wellFormed(name))}=${encodeURIComponent(wellFormed(valueOf(random, name)))}`);
    }
  }
  if (pairs.length > 0 && random.chance(0.2)) {
    const at = random.below(pairs.length);
    const [name] = pairs[at].split('=');
    pairs[at] = `${name}=${encodeURIComponent(wellFormed(valueOf(random, name)))}`;
  }
  // It waits for thirty seconds unless told otherwise.
  if (head.includes('_cluster/health') && !pairs.some((pair) => pair.startsWith('timeout='))) pairs.push('timeout=1s');
  const joined = pairs.join('&').slice(0, 6000);
  return joined === '' ? head : `${head}?${joined}`;
}

function valueOf(random, name) {
  const known = parameter(name);
  if (known?.type === 'time' || /timeout|interval|keep_alive|scroll$/.test(name)) return random.pick(TIMES);
  if (known?.values !== undefined && random.chance(0.7)) return random.pick(known.values);
  if (known?.type === 'boolean' && random.chance(0.7)) return random.pick(['true', 'false', '']);
  if (name === 'filter_path')
    return random.pick(['**', '*.a', '-hits', 'hits.**.a,-**.b', '\\', '.', 'a'.repeat(200), '**.**.**.a']);
  return text(random, random.pick(['1', 'title', 'a,b', '10']));
}

/** A text that can be written as UTF-8. */
function wellFormed(given) {
  return Buffer.from(given, 'utf8').toString('utf8');
}

function badHeader(random, headers) {
  const TYPES = [
    'application/json',
    'application/x-ndjson',
    'application/yaml',
    'text/plain',
    'application/cbor',
    'application/json; charset=utf-16',
    'a',
    'application/vnd.elasticsearch+json;compatible-with=8',
    'application/vnd.elasticsearch+json;compatible-with=99',
    '*/*',
    'multipart/form-data',
  ];
  const [name, values] = random.pick([
    ['content-type', TYPES],
    ['accept', TYPES],
    ['accept-encoding', ['gzip', 'zstd', 'br;q=0', 'gzip;q=2', ',,,', '*', 'identity;q=0']],
    ['content-encoding', ['gzip', 'deflate', 'zstd', 'br', 'gzip, gzip', 'nothing', '']],
    ['x-opaque-id', ['a', 'a'.repeat(5000), '\u00ff', '"']],
    ['traceparent', ['00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01', '00-00-00-00', 'x']],
    ['authorization', ['ApiKey', 'ApiKey a', 'Basic YTpi', 'Bearer x', 'ApiKey ////', 'ApiKey ' + 'a'.repeat(4000)]],
    ['expect', ['100-continue', '200-maybe']],
    ['if-none-match', ['*']],
    ['x-http-method-override', ['DELETE']],
  ]);
  headers[name] = random.pick(values);
}
