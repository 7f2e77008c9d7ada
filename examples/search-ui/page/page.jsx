/** @jsxImportSource preact */
// The page: it asks while one types, and shows texts as texts.
import { render } from 'preact';
import { useEffect, useState } from 'preact/hooks';

/** How long to wait for the next letter before the search; suggestions are fast enough to come at once. */
const TYPING_MS = 150;
/** Levels of an explanation that are open. */
const OPEN_LEVELS = 1;

async function get(path, parameters, signal) {
  const answer = await fetch(`${path}?${new URLSearchParams(parameters)}`, { signal });
  if (!answer.ok) throw new Error((await answer.json()).error);
  return answer.json();
}

/** What `path` answers to `parameters`: the last answer until there is a new one, and `none` while there is nothing to ask. */
function useAnswer(path, parameters, none, wait = 0) {
  const [answer, setAnswer] = useState(none);
  const asked = parameters.q === '' ? undefined : JSON.stringify(parameters);
  useEffect(() => {
    if (asked === undefined) return setAnswer(none);
    // An answer that is late must not take the place of a later one.
    const running = new AbortController();
    const ask = () => get(path, JSON.parse(asked), running.signal).then(setAnswer, failed);
    const failed = ({ name, message }) => name !== 'AbortError' && setAnswer({ ...none, error: message });
    const timer = setTimeout(ask, wait);
    return () => {
      clearTimeout(timer);
      running.abort();
    };
  }, [path, asked]);
  return answer;
}

const NOTHING_FOUND = { hits: [], topics: [] };
const NO_TITLES = [];

function Page() {
  const [question, setQuestion] = useState('');
  const [topic, setTopic] = useState('');
  const q = question.trim();
  const titles = useAnswer('/suggest', { q }, NO_TITLES);
  const { hits, topics, error } = useAnswer('/search', { q, topic }, NOTHING_FOUND, TYPING_MS);
  const count = hits.length === 1 ? '1 article' : `${hits.length} articles`;
  return (
    <main>
      <h1>Articles</h1>
      <form role="search" onSubmit={(event) => event.preventDefault()}>
        <label for="question">What do you want to know?</label>
        <input
          id="question"
          type="search"
          list="suggestions"
          autocomplete="off"
          autofocus
          value={question}
          onInput={(event) => setQuestion(event.currentTarget.value)}
        />
        <datalist id="suggestions">
          {Array.isArray(titles) && titles.map((title) => <option key={title} value={title} />)}
        </datalist>
      </form>
      <div id="topics" role="group" aria-label="Topics">
        {topics.map(({ name, count: many }) => (
          <button
            key={name}
            type="button"
            aria-pressed={name === topic}
            onClick={() => setTopic(name === topic ? '' : name)}
          >
            {name} ({many})
          </button>
        ))}
      </div>
      <p role="status">{error ?? (q === '' ? '' : count)}</p>
      <ol id="hits">
        {hits.map((hit) => (
          <Hit key={hit.id} hit={hit} q={q} />
        ))}
      </ol>
    </main>
  );
}

function Hit({ hit: { id, title, passage }, q }) {
  const [lists, setLists] = useState([]);
  // What was said of another question.
  useEffect(() => setLists([]), [q]);
  const explain = (event) => {
    event.preventDefault();
    get('/why', { q, id }).then(setLists, ({ message }) => setLists([{ list: message, matched: false }]));
  };
  return (
    <li>
      <b>{title}</b>
      <p>
        <Marked passage={passage} />
      </p>
      <a href={`/why?${new URLSearchParams({ q, id })}`} aria-label={`Why was ${title} found?`} onClick={explain}>
        Why?
      </a>
      {lists.map(({ list, matched, explanation }) => (
        <div key={list}>
          <b>
            By {list}: {matched ? '' : 'not found'}
          </b>
          <ul>{matched && <Explanation of={explanation} depth={0} />}</ul>
        </div>
      ))}
    </li>
  );
}

/** A passage whose marks become elements: nothing of a text is taken for HTML. */
function Marked({ passage }) {
  return passage.split(/<\/?em>/).map((part, at) => (at % 2 === 1 ? <mark>{part}</mark> : part));
}

/** What the engine says of a score: a tree of values and descriptions. How a value is computed is for those who open it. */
function Explanation({ of: { value, description, details = [] }, depth }) {
  const said = `${value.toFixed(2)} ${description}`;
  if (details.length === 0) return <li>{said}</li>;
  return (
    <li>
      <details open={depth < OPEN_LEVELS}>
        <summary>{said}</summary>
        <ul>
          {details.map((each) => (
            <Explanation of={each} depth={depth + 1} />
          ))}
        </ul>
      </details>
    </li>
  );
}

render(<Page />, document.getElementById('page'));
