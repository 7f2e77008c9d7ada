// The page: it asks while one types, and shows texts as texts.
const [question, suggestions, topics, count, hits] = ['question', 'suggestions', 'topics', 'count', 'hits'].map((id) =>
  document.getElementById(id),
);
/** How long to wait for the next letter before the search; suggestions are fast enough to come at once. */
const TYPING_MS = 150;
/** Levels of an explanation that are open. */
const OPEN_LEVELS = 1;

let topic = '';
let timer;
let running = new AbortController();

/** An element with a text or with others in it. */
function element(name, attributes, ...children) {
  const made = Object.assign(document.createElement(name), attributes);
  made.append(...children);
  return made;
}

/** A passage whose marks become elements: nothing of a text is taken for HTML. */
function marked(passage) {
  return passage.split(/<\/?em>/).map((part, at) => (at % 2 === 1 ? element('mark', {}, part) : part));
}

async function get(path, parameters, signal) {
  const answer = await fetch(`${path}?${new URLSearchParams(parameters)}`, { signal });
  if (!answer.ok) throw new Error((await answer.json()).error);
  return answer.json();
}

async function suggest() {
  const titles = await get('/suggest', { q: question.value });
  suggestions.replaceChildren(...titles.map((value) => element('option', { value })));
}

async function search() {
  // An answer that is late must not take the place of a later one.
  running.abort();
  running = new AbortController();
  const q = question.value.trim();
  if (q === '') {
    topics.replaceChildren();
    hits.replaceChildren();
    count.textContent = '';
    return;
  }
  const found = await get('/search', { q, topic }, running.signal);
  topics.replaceChildren(...found.topics.map(({ name, count: many }) => facet(name, many)));
  count.textContent = found.hits.length === 1 ? '1 article' : `${found.hits.length} articles`;
  hits.replaceChildren(...found.hits.map((hit) => shown(hit, q)));
}

function facet(name, many) {
  const button = element('button', { type: 'button' }, `${name} (${many})`);
  button.setAttribute('aria-pressed', name === topic);
  button.onclick = () => {
    topic = name === topic ? '' : name;
    void search().catch(failed);
  };
  return button;
}

function shown({ id, title, passage }, q) {
  const link = element('a', { href: `/why?${new URLSearchParams({ q, id })}` }, 'Why?');
  link.setAttribute('aria-label', `Why was ${title} found?`);
  const why = element('div');
  link.onclick = (event) => {
    event.preventDefault();
    get('/why', { q, id }).then((lists) => why.replaceChildren(...lists.map(explained)), failed);
  };
  return element('li', {}, element('b', {}, title), element('p', {}, ...marked(passage)), link, why);
}

/** What the engine says of a score: a tree of values and descriptions. */
function explained({ list, matched, explanation }) {
  const tree = ({ value, description, details = [] }, depth) => {
    const said = `${value.toFixed(2)} ${description}`;
    if (details.length === 0) return element('li', {}, said);
    const inner = element('ul', {}, ...details.map((each) => tree(each, depth + 1)));
    // How a value is computed is for who opens it.
    const isOpen = depth < OPEN_LEVELS;
    return element('li', {}, element('details', { open: isOpen }, element('summary', {}, said), inner));
  };
  const head = element('b', {}, `By ${list}: ${matched ? '' : 'not found'}`);
  return element('div', {}, head, element('ul', {}, ...(matched ? [tree(explanation, 0)] : [])));
}

function failed(error) {
  if (error.name !== 'AbortError') count.textContent = error.message;
}

question.addEventListener('input', () => {
  suggest().catch(failed);
  clearTimeout(timer);
  timer = setTimeout(() => void search().catch(failed), TYPING_MS);
});
question.form.addEventListener('submit', (event) => {
  event.preventDefault();
  void search().catch(failed);
});
