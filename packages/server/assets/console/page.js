'use strict';
const $ = (id) => document.getElementById(id);
const LONG_TEXT = 600;
const SHOWN_TOKENS = 14;
/** The marks of passages. They become elements of ours: nothing of a document is ever taken for HTML. */
const [OPENING, CLOSING] = ['<em>', '</em>'];
const STORED_KEY = 'sparrow-key';

/** What was found out about the indices that the key may see: name → fields. */
let indices = {};
let models = modelsByKind([]);
/** The search whose hits are shown, for the next page. */
let shown;
/** What the address asked for when the page was opened; taken once the indices are known. */
let wanted = new URLSearchParams(location.hash.slice(1));

class Refused extends Error {}

/** Sends a request; resolves with the answer's JSON, or its text if it is none. */
async function call(method, path, body) {
  const key = $('key').value.trim();
  if (key === '') throw new Refused('Enter a key first.');
  // A header takes no other letters; the browser's own words for that would help nobody.
  if (!/^[\x21-\x7e]+$/.test(key))
    throw new Refused('The key is one word of letters and digits, as the first start printed it.');
  const headers = { Authorization: `ApiKey ${key}`, ...(body ? { 'Content-Type': bodyType(path) } : {}) };
  let response;
  try {
    // Without credentials, a 401 is an answer; with them the browser would ask for a user and a password.
    response = await fetch(path, { method, headers, body: body || undefined, credentials: 'omit' });
  } catch (error) {
    throw new Refused(`The server cannot be reached (${error.message}).`);
  }
  const text = await response.text();
  let answer = text;
  try {
    answer = JSON.parse(text);
  } catch {
    // A table of _cat, or nothing.
  }
  if (response.ok) return answer;
  if (response.status === 401)
    throw new Refused('This key is not accepted. The owner key is in the file owner.key of the data directory.');
  throw Object.assign(new Refused(sentences(answer?.error) || text || response.statusText), {
    status: response.status,
    answer,
  });
}

function bodyType(path) {
  return /\/_(?:bulk|msearch)\b/.test(path) ? 'application/x-ndjson' : 'application/json';
}

/** An error with its causes, one a line. */
function sentences(error) {
  if (!error || typeof error === 'string') return error;
  const lines = [];
  const causes = (failed) => [failed.caused_by, failed.failed_shards?.[0]?.reason].filter(Boolean);
  for (let open = [error]; open.length > 0; open = open.flatMap(causes)) {
    lines.push(...open.map(({ type, reason }) => `${type}: ${reason}`));
  }
  return [...new Set(lines)].join('\n');
}

function say(text, bad = false) {
  $('message').textContent = text;
  $('message').className = bad ? 'bad' : '';
}

/** Runs something that asks the server; what goes wrong is said. */
async function attempt(work, ...buttons) {
  for (const button of buttons) button.disabled = true;
  try {
    await work();
  } catch (error) {
    say(error.message, true);
    clear();
    if (error.answer) showRaw(error.answer);
  } finally {
    for (const button of buttons) button.disabled = false;
  }
}

function fill(select, values, label = (value) => value) {
  const chosen = select.value;
  select.replaceChildren(...values.map((value) => new Option(label(value), value)));
  if (values.includes(chosen)) select.value = chosen;
  select.disabled = values.length === 0;
}

function element(tag, attributes, ...children) {
  const made = Object.assign(document.createElement(tag), attributes);
  made.append(...children);
  return made;
}

function bar(share) {
  const filled = element('i', {});
  filled.style.width = `${Math.max(0, Math.min(100, 100 * share || 0))}%`;
  return element('div', { className: 'bar' }, filled);
}

async function loadIndices() {
  say('');
  const mappings = await call('GET', '/_mapping');
  indices = Object.fromEntries(Object.entries(mappings).map(([name, is]) => [name, leaves(is.mappings.properties)]));
  // A key that may not see these can search all the same.
  const counts = await call('GET', '/_cat/indices?format=json&h=index,docs.count').catch(() => []);
  const { trained_model_configs: configs } = await call('GET', '/_ml/trained_models?size=1000').catch(() => ({
    trained_model_configs: [],
  }));
  models = modelsByKind(configs);
  const documents = Object.fromEntries(counts.map((row) => [row.index, Number(row['docs.count']).toLocaleString()]));
  const names = Object.keys(indices).sort();
  fill($('index'), names, (name) => (name in documents ? `${name} (${documents[name]})` : name));
  if (names.includes(wanted.get('index'))) $('index').value = wanted.get('index');
  if (names.length === 0)
    say('There is no index yet. In the folder of the checkout, `npm run demo -- --limit 5000` makes one.');
  loadWays();
  if (ways().some(({ id }) => id === wanted.get('by'))) $('way').value = wanted.get('by');
  loadModels();
  wanted = new URLSearchParams();
}

function ways() {
  return waysToSearch(indices[$('index').value] ?? []);
}

function loadWays() {
  const known = ways();
  fill(
    $('way'),
    known.map(({ id }) => id),
    (id) => known.find((way) => way.id === id).label,
  );
  if ($('index').value && known.length === 0)
    say('This index has no field with text or vectors. Send it a request of your own.');
  loadModels();
}

function loadModels() {
  const way = ways().find(({ id }) => id === $('way').value);
  const known = models[way && modelKind(way)] ?? [];
  fill($('model'), known);
  $('models').hidden = known.length < 2;
}

async function search(from = 0) {
  const index = $('index').value;
  const way = ways().find(({ id }) => id === $('way').value);
  if (!way) throw new Refused('Choose an index with a field of text or vectors.');
  const marked = withPassages(indices[index]);
  const [explain, profile] = [$('explain').checked, $('profile').checked];
  const body = searchBody(way, $('question').value, { model: $('model').value, marked, from, explain, profile });
  $('line').value = `POST /${encodeURIComponent(index)}/_search`;
  $('body').value = JSON.stringify(body, null, 2);
  remember();
  await send({ from, paged: true });
}

/** Sends the request as it stands in the page, and shows hits as hits and anything else as it is. */
async function send({ from = 0, paged = false } = {}) {
  const [, method = 'GET', path] = /^\s*(?:([A-Za-z]+)\s+)?(\/?\S+)\s*$/.exec($('line').value) ?? [];
  if (!path) throw new Refused('Write a method and a path, as in: GET /_cat/indices?v');
  let body = $('body').value.trim();
  const verb = method.toUpperCase();
  // A browser sends no body with a GET. Every endpoint that reads one there takes a POST as well.
  const sent = verb === 'GET' && body ? 'POST' : verb;
  if (body && bodyType(path) === 'application/x-ndjson') body += '\n';
  const begun = performance.now();
  const answer = await call(sent, path.startsWith('/') ? path : `/${path}`, body);
  const took = `${Math.round(performance.now() - begun)} ms in all`;
  if (!Array.isArray(answer?.hits?.hits)) {
    clear();
    say(`Done, ${took}.`);
    return showRaw(answer, true);
  }
  showHits(answer, { took, from, paged, index: decodeURIComponent(path.split('/')[1] ?? '') });
}

function showHits(answer, { took, from, paged, index }) {
  const { total, max_score: best, hits } = answer.hits;
  if (from === 0) clear();
  const count = total ? `${total.relation === 'gte' ? 'more than ' : ''}${total.value.toLocaleString()} found, ` : '';
  const failed = answer._shards?.failures?.map(({ reason }) => `\n${sentences(reason)}`).join('') ?? '';
  const late = answer.timed_out ? '\nThe time was over before everything was searched.' : '';
  say(`${count}${answer.took} ms in the server, ${took}${late}${failed}`, failed !== '');
  shown = { from, best: from === 0 ? (best ?? hits[0]?._score) : shown?.best };
  $('hits').append(...hits.map((found) => hit(found, shown.best, indices[found._index] ?? indices[index] ?? [])));
  $('more').hidden = hits.length < HITS || !paged || !total || from + HITS >= total.value;
  showPhases(answer.profile?.phases);
  showRaw(answer, hits.length === 0 && answer.aggregations !== undefined);
}

function clear() {
  $('hits').replaceChildren();
  $('more').hidden = true;
  $('raw').hidden = true;
  showPhases();
}

function showPhases(phases = {}) {
  const rows = Object.entries(phases).map(([name, nanos]) => [name.replace('_in_nanos', ''), nanos / 1e6]);
  const sum = rows.reduce((all, [, took]) => all + took, 0);
  $('phases').replaceChildren(
    ...rows.map(([name, took]) =>
      element('li', {}, element('span', {}, name), bar(took / sum), element('span', {}, `${took.toFixed(2)} ms`)),
    ),
  );
  $('phases').hidden = rows.length === 0;
}

function showRaw(answer, open = false) {
  const raw = $('raw');
  const write = () => {
    if (raw.open)
      raw.querySelector('pre').textContent = typeof answer === 'string' ? answer : JSON.stringify(answer, null, 2);
  };
  // Written when it is looked at: vectors make long texts.
  raw.ontoggle = write;
  raw.open = open;
  raw.hidden = false;
  write();
}

/** One hit: its passages first, then its fields. */
function hit(found, best, fields) {
  const types = Object.fromEntries(fields);
  const list = element('dl', {});
  for (const [name, passages] of Object.entries(found.highlight ?? {})) {
    list.append(
      element('dt', {}, name),
      element('dd', {}, ...passages.flatMap((text, at) => [at ? ' … ' : '', ...marked(text)])),
    );
  }
  for (const [name, value] of Object.entries(found._source ?? found.fields ?? {})) {
    if (typeof value === 'string' && found.highlight?.[name]?.some((text) => unmarked(text) === value)) continue;
    list.append(element('dt', {}, name), element('dd', {}, content(value, types[name])));
  }
  const score = found._score === null ? (found.sort ?? []).join(', ') : found._score?.toFixed(4);
  const why = found._explanation ? [details('Why', element('ul', {}, explanation(found._explanation)))] : [];
  return element(
    'li',
    { className: 'hit' },
    element('div', { className: 'head' }, element('b', {}, found._id), found._index, element('span', {}, score ?? '')),
    bar(found._score / best),
    list,
    ...why,
  );
}

function details(title, ...children) {
  return element('details', { className: 'why', open: true }, element('summary', {}, title), ...children);
}

/** Lucene's tree of values; what lies deeper is folded. */
function explanation({ value, description, details: parts = [] }, depth = 0) {
  const line = [element('b', {}, Number(value.toFixed(4))), description];
  if (parts.length === 0) return element('li', {}, ...line);
  const list = element('ul', {}, ...parts.map((part) => explanation(part, depth + 1)));
  return element('li', {}, element('details', { open: depth < 1 }, element('summary', {}, ...line), list));
}

/** A text whose marks become elements. */
function marked(text) {
  return text.split(OPENING).flatMap((part, at) => {
    if (at === 0) return [part];
    const [inside, ...rest] = part.split(CLOSING);
    return [element('mark', {}, inside), rest.join('')];
  });
}

function unmarked(text) {
  return text.replaceAll(OPENING, '').replaceAll(CLOSING, '');
}

/** A value of a document: tokens by weight, vectors by their length, long texts folded. */
function content(value, type) {
  if ((type === 'sparse_vector' || type === 'rank_features') && value && typeof value === 'object') {
    const tokens = Object.entries(value).sort(([, a], [, b]) => b - a);
    const first = tokens
      .slice(0, SHOWN_TOKENS)
      .map(([token, weight]) => element('span', { title: String(weight) }, token));
    const rest = tokens.length - first.length;
    return element('div', { className: 'tokens' }, ...first, rest > 0 ? `and ${rest} more` : '');
  }
  if (type === 'dense_vector' && Array.isArray(value)) return `${value.length} numbers`;
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  if (text.length <= LONG_TEXT) return text;
  const more = element(
    'button',
    { type: 'button', className: 'link' },
    `all ${text.length.toLocaleString()} characters`,
  );
  const short = element('span', {}, `${text.slice(0, LONG_TEXT)} … `, more);
  more.addEventListener('click', () => short.replaceChildren(text));
  return short;
}

async function health() {
  if (document.hidden) return;
  let status = 'unreachable';
  try {
    ({ status } = await (await fetch('/_health')).json());
  } catch {
    // Said as it is: nobody answers.
  }
  $('status').textContent = status;
  $('status').className = status === 'ready' ? 'up' : '';
}

/** The search lives in the address, so that it can be reloaded and shared; the key does not. */
function remember() {
  const state = { index: $('index').value, by: $('way').value, q: $('question').value };
  history.replaceState(null, '', `#${new URLSearchParams(state)}`);
}

$('key').value = sessionStorage.getItem(STORED_KEY) ?? '';
$('question').value = wanted.get('q') ?? '';
$('key').addEventListener('change', () => {
  sessionStorage.setItem(STORED_KEY, $('key').value.trim());
  clear();
  // What another key could see is not this one's.
  indices = {};
  fill($('index'), []);
  loadWays();
  void attempt(loadIndices);
});
$('index').addEventListener('change', loadWays);
$('way').addEventListener('change', loadModels);
$('form').addEventListener('submit', (event) => {
  event.preventDefault();
  void attempt(search, $('go'));
});
$('request').addEventListener('submit', (event) => {
  event.preventDefault();
  void attempt(send, $('send'));
});
$('more').addEventListener('click', () => void attempt(() => search(shown.from + HITS), $('more')));
document.addEventListener('keydown', (event) => {
  if (event.key === 'Enter' && (event.ctrlKey || event.metaKey) && event.target === $('body'))
    $('request').requestSubmit();
  if (event.key !== '/' || event.ctrlKey || event.metaKey || /^(?:INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName))
    return;
  event.preventDefault();
  $('question').focus();
});
document.addEventListener('visibilitychange', () => void health());
void health();
setInterval(() => void health(), 5000);
if ($('key').value) void attempt(loadIndices);
$($('key').value ? 'question' : 'key').focus();
