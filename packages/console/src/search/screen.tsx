// Search: the same question asked in every way that the index knows, side by side.
import type { JSX } from 'preact';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';

import { filterProblem } from '../../../engine/src/diagnostics/named-fields';
import { Refused } from '../lib/api';
import { count } from '../lib/format';
import { type Index, type Known, keepUsual, loadIndices, usualIndex } from '../lib/indices';
import { foreignLanguage } from '../../../cli/src/documents/language';
import { useLoad } from '../lib/load';
import { current, go, remember } from '../lib/route';
import { Head, Hidden, Note, Problem } from '../shell/parts';
import { Board } from './board';
import { HITS } from './body';
import { EXAMPLE_INDEX, EXAMPLE_QUESTIONS } from './example';
import { type Kind, LABELS, firstOfEach, waysOf } from './fields';
import { notesOfFilter } from './filter';
import { FacetList } from './facet-list';
import { FilterInput } from './filter-input';
import { Question } from './question';
import { type Result, explainedBy, search } from './results';
import { Welcome } from './welcome';

type Mode = 'compare' | Kind;

const NO_NOTES = { unknown: [], notes: [] };
/** How long to wait for the next letter before asking. */
const TYPING_MS = 180;
/** How long a search may take before the page says that it goes on. */
const PATIENCE_MS = 1000;
/** Longest wait for the next letter: the slower the last search was, the fewer are asked for while one types. */
const LONGEST_WAIT_MS = 1500;

export function SearchScreen(): JSX.Element {
  const { value: known, error, reload } = useLoad(loadIndices, []);
  if (known === undefined) {
    return (
      <>
        <Head title="Search" />
        <Problem text={error} />
      </>
    );
  }
  const searchable = known.indices.filter(({ fields }) => waysOf(fields, known.tasks).length > 0);
  if (searchable.length === 0) {
    return (
      <>
        <Head title="Search" />
        {known.hidden.length > 0 ? <Hidden names={known.hidden} /> : <Welcome onLoaded={reload} />}
      </>
    );
  }
  return <Searching known={known} searchable={searchable} onReload={reload} />;
}

function Searching({
  known,
  searchable,
  onReload,
}: {
  readonly known: Known;
  readonly searchable: readonly Index[];
  readonly onReload: () => void;
}): JSX.Element {
  const asked = useMemo(() => current().params, []);
  const [name, setName] = useState(() => asked.get('index') ?? usualIndex(searchable)?.name ?? '');
  const index = searchable.find((one) => one.name === name) ?? usualIndex(searchable);
  const [text, setText] = useState(asked.get('q') ?? '');
  const [filter, setFilter] = useState(asked.get('filter') ?? '');
  const [mode, setMode] = useState<Mode>((asked.get('by') as Mode | null) ?? 'compare');
  const [why, setWhy] = useState(asked.get('why') !== 'no');
  const [size, setSize] = useState(HITS);
  const [results, setResults] = useState<readonly Result[]>([]);
  const [error, setError] = useState('');
  const [{ unknown, notes }, setNotes] = useState<Awaited<ReturnType<typeof notesOfFilter>>>(NO_NOTES);
  const [busy, setBusy] = useState(false);
  const latest = useRef(0);
  const running = useRef<AbortController | undefined>(undefined);
  const ways = useMemo(() => (index === undefined ? [] : waysOf(index.fields, known.tasks)), [index, known]);
  const columns = useMemo(() => {
    const all = firstOfEach(ways);
    return mode === 'compare' ? all : all.filter(({ kind }) => kind === mode);
  }, [ways, mode]);

  const ask = (): void => {
    running.current?.abort();
    if (index === undefined || text.trim() === '') {
      setResults([]);
      setNotes(NO_NOTES);
      setError('');
      return;
    }
    keepUsual(index.name);
    const { signal } = (running.current = new AbortController());
    const begun = performance.now();
    setBusy(true);
    const inEachColumn = (isExplained: boolean): Promise<readonly Result[]> =>
      Promise.all(
        columns.map((way) => search(index, known, ways, way, { text, filter, why: isExplained, size }, signal)),
      );
    const run = async (): Promise<void> => {
      const found = await inEachColumn(false);
      latest.current = performance.now() - begun;
      setResults(found);
      setError('');
      const said = await notesOfFilter(index.name, filter);
      // Somebody may have asked for something else meanwhile.
      if (signal.aborted) return;
      setNotes(said);
      // Explaining runs the model for each hit: the hits are shown before, with the time of the search alone.
      if (!why || found.every(({ hits }) => hits.length === 0)) return;
      const explained = await inEachColumn(true);
      setResults(found.map((result, at) => explainedBy(result, explained[at])));
    };
    run()
      .catch((failure: unknown) => {
        if (signal.aborted) return;
        setResults([]);
        setNotes(NO_NOTES);
        setError(failure instanceof Refused ? filterProblem(failure.message, filter) : String(failure));
      })
      .finally(() => {
        if (!signal.aborted) setBusy(false);
      });
  };
  useEffect(() => {
    remember('search', {
      index: index?.name,
      q: text,
      by: mode === 'compare' ? undefined : mode,
      filter,
      why: why ? undefined : 'no',
    });
    const timer = setTimeout(ask, Math.min(Math.max(TYPING_MS, latest.current), LONGEST_WAIT_MS));
    return () => {
      clearTimeout(timer);
    };
  }, [text, filter, mode, why, size, index]);

  const foreign = foreignLanguage(text);
  const kinds = firstOfEach(ways).map(({ kind }) => kind);
  return (
    <>
      <Head title="Search" />
      <form
        class="search-form"
        role="search"
        onSubmit={(event) => {
          event.preventDefault();
          ask();
        }}
      >
        <Question text={text} onText={setText} />
        <button disabled={busy && results.length === 0}>Search</button>
        <div class="search-options">
          <label class="field">
            <span>Index</span>
            <select
              value={index?.name}
              onChange={(event) => {
                setName(event.currentTarget.value);
                setResults([]);
              }}
            >
              {searchable.map(({ name: one, documents }) => (
                <option key={one} value={one}>
                  {one}
                  {documents === undefined ? '' : ` (${count(documents)})`}
                </option>
              ))}
            </select>
          </label>
          <label class="field">
            <span>Only where</span>
            <FilterInput
              value={filter}
              placeholder="field:value"
              title={`As in topic:orders AND year:[2020 TO *]. The fields: ${index?.fields.map(({ name: one }) => one).join(', ') ?? ''}`}
              onFilter={setFilter}
            />
          </label>
          <fieldset class="segments">
            <legend>Search by</legend>
            {(['compare', ...kinds] as Mode[]).map((one) => (
              <label key={one} class={one}>
                <input
                  type="radio"
                  name="mode"
                  checked={mode === one}
                  onChange={() => {
                    setMode(one);
                  }}
                />
                <span>{one === 'compare' ? 'Side by side' : LABELS[one]}</span>
              </label>
            ))}
          </fieldset>
          <label class="check">
            <input
              type="checkbox"
              checked={why}
              onChange={(event) => {
                setWhy(event.currentTarget.checked);
              }}
            />{' '}
            show why
          </label>
        </div>
      </form>
      {foreign !== undefined && (
        <Note kind="warn">
          This looks like {foreign}. The models that come with the server read English only: words are found as they
          stand, meaning is not.
        </Note>
      )}
      {text.trim() === '' && index !== undefined && <Start index={index} onAsk={setText} onReload={onReload} />}
      {busy && <Waiting />}
      <Problem text={error} />
      {unknown.length > 0 && filter.trim() !== '' && (
        <Note kind="warn">
          {index?.name} has no field {unknown.join(', ')}, so nothing is found by it.
        </Note>
      )}
      {filter.trim() !== '' &&
        notes.map((note) => (
          <Note key={note} kind="warn">
            {note}.
          </Note>
        ))}
      {index !== undefined && results.length > 0 && text.trim() !== '' && (
        <>
          <FacetList index={index} results={results} filter={filter} onFilter={setFilter} />
          <Board results={results} ways={ways} index={index} known={known} text={text} filter={filter} />
          {results.some(({ hits }) => hits.length === size) && (
            <button
              type="button"
              class="quiet wide"
              onClick={() => {
                setSize(size + HITS);
              }}
            >
              More
            </button>
          )}
        </>
      )}
    </>
  );
}

function Start({
  index,
  onAsk,
  onReload,
}: {
  readonly index: Index;
  readonly onAsk: (text: string) => void;
  readonly onReload: () => void;
}): JSX.Element {
  if (index.name !== EXAMPLE_INDEX) {
    return (
      <div class="start">
        <p>
          Ask <b>{index.name}</b> something. A question in your own words shows best what search by meaning does.
        </p>
        <div class="buttons">
          <button
            type="button"
            class="quiet"
            onClick={() => {
              go('add');
            }}
          >
            Add other data
          </button>
          <button type="button" class="quiet" onClick={onReload}>
            Look for new indices
          </button>
        </div>
      </div>
    );
  }
  return (
    <div class="start">
      <p>
        These are thirty short texts. Each of the questions below shares hardly a word with the text that answers it:
      </p>
      <div class="chips">
        {EXAMPLE_QUESTIONS.map((question) => (
          <button
            key={question}
            type="button"
            class="chip"
            onClick={() => {
              onAsk(question);
            }}
          >
            {question}
          </button>
        ))}
      </div>
      <button
        type="button"
        class="quiet"
        onClick={() => {
          go('add');
        }}
      >
        Search your own file
      </button>
    </div>
  );
}

/** That a search goes on, where it takes long. */
function Waiting(): JSX.Element {
  const [isLong, setIsLong] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => {
      setIsLong(true);
    }, PATIENCE_MS);
    return () => {
      clearTimeout(timer);
    };
  }, []);
  return (
    <p class="small" role="status">
      {isLong && 'Waiting for the answer. If this question starts a model, that takes some seconds.'}
    </p>
  );
}
