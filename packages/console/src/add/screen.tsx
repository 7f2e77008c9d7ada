// Add data: a file from the disk becomes searchable by meaning while one watches.
import type { JSX } from 'preact';
import { useMemo, useRef, useState } from 'preact/hooks';

import { MEANING_FIELD, type Made, fieldAt, fieldsFor, isByMeaning } from '../../../cli/src/documents/file-mapping';
import { Refused, call, optional } from '../lib/api';
import { bytes, count, duration, plural } from '../lib/format';
import { foreignLanguage } from '../../../cli/src/documents/language';
import { useLoad } from '../lib/load';
import { address } from '../lib/route';
import { type Properties, vectorsOf } from '../search/fields';
import { Icon } from '../shell/icons';
import { Json } from '../shell/json';
import { Head, Note, Problem, Progress, Raw } from '../shell/parts';
import type { Written } from '../requests/catalog';
import { type Progress as Done, upload } from './bulk';
import { AsCode, requestsOf } from './code';
import { decoded } from './encoding';
import { INDEX_NAME, PASTED, type Table, idColumns, indexName, readFiles, withIdsOf } from './parse';

/** Larger files are for the command line: the page holds a file as a whole. */
const LARGEST = 256_000_000;
const PREVIEWED = 3;
/** How often the page asks how many documents can be found by now. */
const WATCH_MS = 700;

/** A file, or a text that was pasted. */
interface Given {
  readonly name: string;
  readonly blob: Blob;
}

const givenIn = (files: FileList | null | undefined): Given[] =>
  [...(files ?? [])].map((file) => ({ name: file.name, blob: file }));

interface Chosen {
  /** The name of the file, or how many they are. */
  readonly name: string;
  /** The first file, after which the index is called. */
  readonly file: string;
  readonly size: number;
  readonly isLatin1: boolean;
  readonly table: Table;
}

/** How a file is loaded that is too large for the page. */
function remedy(name: string): string {
  if (!/\.(?:jsonl|ndjson|csv|tsv|txt|md)$/i.test(name)) {
    return 'Turn it into JSON lines, one document a line, and load these with `sparrow import`.';
  }
  return `Load it on the command line: sparrow import '${name.replaceAll("'", "'\\''")}' --index NAME`;
}

export function AddScreen(): JSX.Element {
  const [chosen, setChosen] = useState<Chosen>();
  const [error, setError] = useState('');
  const take = async (files: readonly Given[]): Promise<void> => {
    setError('');
    try {
      const [first] = files;
      if (first === undefined) return;
      const size = files.reduce((sum, { blob }) => sum + blob.size, 0);
      const isOne = files.length === 1;
      if (size > LARGEST) {
        const what = isOne ? 'The file has' : 'The files have';
        throw new Error(`${what} ${bytes(size)}; the page takes up to ${bytes(LARGEST)}. ${remedy(first.name)}`);
      }
      const read = await Promise.all(
        files.map(async ({ name, blob }) => ({ name, ...decoded(new Uint8Array(await blob.arrayBuffer())) })),
      );
      const table = readFiles(read);
      const isLatin1 = read.some((one) => one.isLatin1);
      setChosen({ name: isOne ? first.name : `${count(files.length)} files`, file: first.name, size, isLatin1, table });
    } catch (failure) {
      setError((failure as Error).message);
    }
  };
  return (
    <>
      <Head title="Add data" />
      {chosen === undefined ? (
        <Choose onFiles={(files) => void take(files)} />
      ) : (
        <Prepare
          chosen={chosen}
          onBack={() => {
            setChosen(undefined);
          }}
        />
      )}
      <Problem text={error} />
    </>
  );
}

function Choose({ onFiles }: { readonly onFiles: (files: readonly Given[]) => void }): JSX.Element {
  const [over, setOver] = useState(false);
  const input = useRef<HTMLInputElement>(null);
  const [text, setText] = useState('');
  return (
    <>
      <div
        class={`drop ${over ? 'over' : ''}`}
        onDragOver={(event) => {
          event.preventDefault();
          setOver(true);
        }}
        onDragLeave={() => {
          setOver(false);
        }}
        onDrop={(event) => {
          event.preventDefault();
          setOver(false);
          onFiles(givenIn(event.dataTransfer?.files));
        }}
      >
        <Icon name="file" />
        <p class="lead">Drop files here</p>
        <p>JSON, JSON lines, CSV, Markdown or plain text. They are sent to this server and nowhere else.</p>
        <button type="button" onClick={() => input.current?.click()}>
          Choose files
        </button>
        <input
          ref={input}
          type="file"
          hidden
          multiple
          aria-label="Files"
          accept=".json,.jsonl,.ndjson,.csv,.tsv,.txt,.md"
          onChange={(event) => {
            onFiles(givenIn(event.currentTarget.files));
          }}
        />
      </div>
      <form
        class="paste"
        onSubmit={(event) => {
          event.preventDefault();
          if (text.trim() !== '') onFiles([{ name: PASTED, blob: new Blob([text]) }]);
        }}
      >
        <label>
          Or paste something
          <textarea
            rows={5}
            value={text}
            placeholder={'{"title": "…", "text": "…"}\nor paragraphs of text'}
            onInput={(event) => {
              setText(event.currentTarget.value);
            }}
          />
        </label>
        <button class="quiet" disabled={text.trim() === ''}>
          Use this text
        </button>
      </form>
    </>
  );
}

interface Run {
  readonly index: string;
  readonly begun: number;
  readonly progress: Done;
  readonly searchable: number;
  readonly ended?: number;
  readonly error?: string;
}

function Prepare({ chosen, onBack }: { readonly chosen: Chosen; readonly onBack: () => void }): JSX.Element {
  const { table } = chosen;
  const [index, setIndex] = useState(() => indexName(chosen.file));
  const [meaning, setMeaning] = useState<readonly string[]>(table.meaning);
  const [dense, setDense] = useState(true);
  const unique = useMemo(() => idColumns(table.documents), [table]);
  // Undefined: the ids that the file itself has.
  const [idBy, setIdBy] = useState<string>();
  const documents = useMemo(
    () => (idBy === undefined ? table.documents : withIdsOf(table.documents, idBy === '' ? undefined : idBy)),
    [table, idBy],
  );
  const ownId = useMemo(
    () => (table.documents.every(({ id, source }) => id !== undefined && id === String(source['id'])) ? 'id' : ''),
    [table],
  );
  const [run, setRun] = useState<Run>();
  const stop = useRef<AbortController | undefined>(undefined);
  const { value: present = {} } = useLoad(
    () => optional<Record<string, { mappings: { properties?: Properties } }>>({}, 'GET', '/_mapping'),
    [],
  );
  /** The fields of the index, if it is there already. */
  const there = Object.hasOwn(present, index) ? (present[index]?.mappings.properties ?? {}) : undefined;
  const foreign = foreignLanguage(
    table.documents
      .slice(0, 20)
      .map(({ source }) => meaning.map((name) => (typeof source[name] === 'string' ? source[name] : '')).join(' '))
      .join(' '),
  );
  const vectors = there?.[MEANING_FIELD];
  const isFixed = (name: string): boolean => there !== undefined && fieldAt(there, name) !== undefined;
  const isTicked = (name: string): boolean =>
    there !== undefined && isFixed(name) ? isByMeaning(there, name) : meaning.includes(name);
  const added = meaning.filter((name) => !isFixed(name));
  const fields = fieldsFor(table.columns, added, dense ? 'hybrid' : 'sparse');
  const properties = Object.fromEntries(Object.entries(fields).filter(([name]) => !isFixed(name)));
  const request: Request =
    there === undefined
      ? { method: 'PUT', path: `/${encodeURIComponent(index)}`, body: { mappings: { properties } } }
      : { method: 'PUT', path: `/${encodeURIComponent(index)}/_mapping`, body: { properties } };
  const start = async (): Promise<void> => {
    const { signal } = (stop.current = new AbortController());
    const begun = performance.now();
    const change = (values: Partial<Run>): void => {
      setRun((before) => ({
        index,
        begun,
        progress: { sent: 0, failed: 0, reasons: [] },
        searchable: 0,
        ...before,
        ...values,
      }));
    };
    setRun({ index, begun, progress: { sent: 0, failed: 0, reasons: [] }, searchable: 0 });
    const watch = setInterval(
      () =>
        void searchable(index).then((found) => {
          change({ searchable: found });
        }),
      WATCH_MS,
    );
    try {
      await prepareIndex(request);
      const progress = await upload(
        index,
        documents,
        (done) => {
          change({ progress: done });
        },
        signal,
      );
      change({ progress, searchable: await searchable(index), ended: performance.now() });
    } catch (failure) {
      change({
        error: signal.aborted ? 'Stopped. What was written stays.' : (failure as Error).message,
        ended: performance.now(),
      });
    } finally {
      clearInterval(watch);
    }
  };
  if (run !== undefined)
    return (
      <Running
        run={run}
        total={table.documents.length}
        question={exampleQuestion(chosen)}
        requests={requestsOf(
          index,
          isEmpty(request) ? undefined : { ...request, body: JSON.stringify(request.body, null, 2) },
          documents,
        )}
        onStop={() => stop.current?.abort()}
        onBack={onBack}
      />
    );
  return (
    <form
      class="prepare"
      onSubmit={(event) => {
        event.preventDefault();
        void start();
      }}
    >
      <p>
        <b>{chosen.name}</b>, {bytes(chosen.size)}: {plural(table.documents.length, 'document')}, read as {table.format}
        .
      </p>
      {chosen.isLatin1 && (
        <Note kind="warn">
          This file is not UTF-8 and was read as Latin-1. If letters are wrong below, save it as UTF-8 and drop that.
        </Note>
      )}
      {table.left.length > 0 && (
        <Note kind="warn">
          Left out: {table.left.slice(0, 5).join('; ')}
          {table.left.length > 5 ? `; and ${table.left.length - 5} more` : ''}.
        </Note>
      )}
      {table.note !== undefined && <Note kind="warn">{sentence(table.note)}</Note>}
      {table.columnNotes
        .filter(({ name }) => !isFixed(name) && !meaning.includes(name))
        .map(({ name, text }) => (
          <Note key={name} kind="warn">
            {text}.
          </Note>
        ))}
      <label class="field">
        <span>Into the index</span>
        <input
          value={index}
          required
          pattern={INDEX_NAME}
          title="lower-case letters, digits, - and _"
          spellcheck={false}
          onInput={(event) => {
            setIndex(event.currentTarget.value);
          }}
        />
      </label>
      {table.format !== 'text' && unique.length > 0 && (ownId !== '' || table.documents[0]?.id === undefined) && (
        <label class="field">
          <span>Id of a document</span>
          <select
            value={idBy ?? ownId}
            onChange={(event) => {
              setIdBy(event.currentTarget.value);
            }}
          >
            <option value="">a new one each time the file is added</option>
            {unique.map((name) => (
              <option key={name} value={name}>
                {name}
              </option>
            ))}
          </select>
        </label>
      )}
      {Object.hasOwn(present, index) && (
        <Note kind="warn">
          There is an index <b>{index}</b> already. The documents are added to it. Its fields stay as they are, and
          columns that it does not have yet become new fields.{' '}
          {documents.some(({ id }) => id === undefined)
            ? 'The documents have no ids of their own, so adding the file again would duplicate them.'
            : 'Documents whose id is in the index already are replaced.'}{' '}
          To start over, delete the index first, under <a href={address('indices', { index })}>Documents</a>.
        </Note>
      )}
      {vectors !== undefined && vectors.type !== 'semantic_text' && added.length > 0 && (
        <Note kind="warn">
          The index has a field <b>{MEANING_FIELD}</b> that holds no vectors: its new columns are found by their words
          only.
        </Note>
      )}
      <fieldset class="columns">
        <legend>What is searched by meaning?</legend>
        {table.columns.map(({ name, example }) => (
          <label key={name} class="check">
            <input
              type="checkbox"
              checked={isTicked(name)}
              disabled={isFixed(name)}
              onChange={(event) => {
                setMeaning(event.currentTarget.checked ? [...meaning, name] : meaning.filter((one) => one !== name));
              }}
            />
            <b>{name}</b>{' '}
            <span class="example">
              {beginning(example)}
              {isFixed(name) && <i> (already in the index)</i>}
            </span>
          </label>
        ))}
      </fieldset>
      <label class="check">
        <input
          type="checkbox"
          checked={vectors === undefined ? dense : vectorsOf(vectors, new Map()).includes('dense')}
          disabled={vectors !== undefined}
          onChange={(event) => {
            setDense(event.currentTarget.checked);
          }}
        />
        With dense vectors too: better answers, but more to compute and to store
      </label>
      {foreign !== undefined && (
        <Note kind="warn">
          These texts look like {foreign}. The models that come with the server read English only, so these texts are
          found by their words but not by their meaning. To change that, start the server with <code>--models</code> and
          a folder that holds a model for {foreign}.
        </Note>
      )}
      {!table.columns.some(({ name }) => isTicked(name)) && (
        <Note kind="warn">If no column is searched by meaning, a search finds only the words themselves.</Note>
      )}
      <div class="buttons">
        <button>Add {plural(table.documents.length, 'document')}</button>
        <button type="button" class="quiet" onClick={onBack}>
          Another file
        </button>
      </div>
      {!isEmpty(request) && (
        <Raw
          title="The request"
          value={`${request.method} ${request.path}\n${JSON.stringify(request.body, null, 2)}`}
        />
      )}
      <section class="preview" aria-label="Preview">
        {table.documents.slice(0, PREVIEWED).map(({ source }, at) => (
          <pre key={at} tabIndex={0} aria-label={`document ${at + 1}`}>
            <Json text={JSON.stringify(source, null, 2).slice(0, 800)} />
          </pre>
        ))}
      </section>
    </form>
  );
}

function Running({
  run,
  total,
  question,
  requests,
  onStop,
  onBack,
}: {
  readonly run: Run;
  readonly total: number;
  readonly question: string;
  readonly requests: readonly Written[];
  readonly onStop: () => void;
  readonly onBack: () => void;
}): JSX.Element {
  const { progress, searchable: found, ended } = run;
  const done = progress.sent + progress.failed;
  const ms = (ended ?? performance.now()) - run.begun;
  const rate = ms > 0 ? (done / ms) * 1000 : 0;
  return (
    <div class="running">
      <p class="lead" role="status">
        {ended === undefined ? 'Writing' : run.error === undefined ? 'Done' : 'Ended'}:{' '}
        {progress.failed > 0
          ? `${count(progress.sent)} added, ${count(progress.failed)} refused`
          : `${count(done)} of ${plural(total, 'document')}`}
      </p>
      <Progress done={done} total={total} label="documents written" />
      <dl class="figures">
        <div>
          <dt>searchable now</dt>
          <dd>{count(found)}</dd>
        </div>
        <div>
          <dt>documents/s</dt>
          <dd>{count(rate)}</dd>
        </div>
        <div>
          <dt>{ended === undefined ? 'left' : 'took'}</dt>
          <dd>{ended === undefined ? (rate > 0 ? duration(((total - done) / rate) * 1000) : '…') : duration(ms)}</dd>
        </div>
        {progress.failed > 0 && (
          <div class="bad">
            <dt>refused</dt>
            <dd>{count(progress.failed)}</dd>
          </div>
        )}
      </dl>
      {progress.reasons.length > 0 && (
        <Note kind="bad">
          {progress.reasons.map((reason) => (
            <p key={reason}>{reason}</p>
          ))}
        </Note>
      )}
      <Problem text={run.error} />
      {ended !== undefined && run.error === undefined && <AsCode requests={requests} />}
      <div class="buttons">
        <a class="button" href={address('search', { index: run.index, q: question })} aria-disabled={found === 0}>
          Search {ended === undefined ? 'while it loads' : run.index}
        </a>
        {ended === undefined ? (
          <button type="button" class="quiet" onClick={onStop}>
            Stop
          </button>
        ) : (
          <button type="button" class="quiet" onClick={onBack}>
            Another file
          </button>
        )}
      </div>
    </div>
  );
}

interface Mapping {
  readonly properties: Readonly<Record<string, Made>>;
}

/** What makes an index ready for the documents. */
interface Request {
  readonly method: 'PUT';
  readonly path: string;
  readonly body: { readonly mappings: Mapping } | Mapping;
}

/** Whether an index that is there has all fields already. */
function isEmpty({ body }: Request): boolean {
  return 'properties' in body && Object.keys(body.properties).length === 0;
}

async function prepareIndex(request: Request): Promise<void> {
  if (isEmpty(request)) return;
  try {
    await call(request.method, request.path, request.body);
  } catch (error) {
    // Documents may be added to an index that is there.
    if (
      !(error instanceof Refused) ||
      !JSON.stringify(error.answer ?? '').includes('resource_already_exists_exception')
    )
      throw error;
  }
}

async function searchable(index: string): Promise<number> {
  try {
    return (await call<{ count: number }>('GET', `/${encodeURIComponent(index)}/_count`)).count;
  } catch {
    return 0;
  }
}

/** Longest value that shows what a column holds. */
const EXAMPLE = 90;

function beginning(example: string): string {
  return example.length <= EXAMPLE ? example : `${example.slice(0, EXAMPLE)}…`;
}

function sentence(note: string): string {
  return `${note.slice(0, 1).toUpperCase()}${note.slice(1)}.`;
}

/** How the first text begins: a question that finds something. */
function exampleQuestion({ table }: Chosen): string {
  const [column] = table.meaning;
  const text = column === undefined ? '' : table.documents[0]?.source[column];
  return typeof text === 'string' ? text.split(/\s+/).slice(0, 8).join(' ') : '';
}
