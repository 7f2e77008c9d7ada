// Requests: any request to the server, with completion, a history, and the same as code for other clients.
import type { JSX } from 'preact';
import { useMemo, useRef, useState } from 'preact/hooks';

import { bodyType, call, parsed, send, sentences } from '../lib/api';
import { duration } from '../lib/format';
import { type Index, loadIndices } from '../lib/indices';
import { useLoad } from '../lib/load';
import { MEANING_FIELD } from '../../../cli/src/documents/file-mapping';
import { EXAMPLE_INDEX } from '../search/example';
import type { Field } from '../search/fields';
import { Json } from '../shell/json';
import { Copy, Head, Note } from '../shell/parts';
import { type Endpoint, type Written, catalogOf, endpointFor, planFor, splitLine } from './catalog';
import { completeBody, completeLine } from './complete';
import { LANGUAGES, type Language, asCode } from './copy';
import { Suggesting } from './suggesting';

interface Answer {
  readonly status: number;
  readonly ok: boolean;
  readonly text: string;
  readonly ms: number;
  /** What the server warns of. */
  readonly warnings: readonly string[];
  readonly says: string | undefined;
}

interface Past {
  readonly line: string;
  readonly body: string;
  readonly status: number;
}

const HISTORY = 'sparrow-history';
const KEPT = 40;
/** Longest body that the history keeps: a session's storage is small. */
const LONGEST_KEPT = 20_000;

type Example = readonly [label: string, line: string, body: string];

/** Requests to begin with, to the example or else to an index that is there and can be searched by meaning. */
function examplesFor(indices: readonly Index[]): readonly Example[] {
  const meanings = (index: Index): Field[] => index.fields.filter(({ type }) => type === 'semantic_text');
  const able = indices.filter((index) => meanings(index).length > 0);
  const index = able.find(({ name }) => name === EXAMPLE_INDEX) ?? able[0];
  const name = index?.name ?? EXAMPLE_INDEX;
  const field = (index === undefined ? undefined : meanings(index)[0]?.name) ?? MEANING_FIELD;
  return [
    ['Indices', 'GET /_cat/indices?v', ''],
    [
      'Hybrid search',
      `GET /${name}/_search`,
      json({ retriever: { linear: { query: 'how to avoid pain after running' } } }),
    ],
    ['By meaning', `GET /${name}/_search`, json({ query: { semantic: { field, query: 'why does bread rise' } } })],
    [
      'Expand a text',
      'POST /_ml/trained_models/.sparse_encoder_model_2/_infer',
      json({ docs: [{ text_field: 'fear of open spaces' }] }),
    ],
    ['The models', 'GET /_ml/trained_models/_stats', ''],
  ];
}

function json(value: object): string {
  return JSON.stringify(value, null, 2);
}

function history(): Past[] {
  const stored = parsed(sessionStorage.getItem(HISTORY) ?? '[]');
  return Array.isArray(stored) ? (stored as Past[]) : [];
}

export function RequestsScreen(): JSX.Element {
  const { value: catalog = [] } = useLoad(
    async (): Promise<Endpoint[]> => catalogOf(await call('GET', '/_openapi.json')),
    [],
  );
  const { value: known } = useLoad(loadIndices, []);
  const [past, setPast] = useState(history);
  const [line, setLine] = useState(past[0]?.line ?? 'GET /_cat/indices?v');
  const [body, setBody] = useState(past[0]?.body ?? '');
  const [answer, setAnswer] = useState<Answer>();
  const [error, setError] = useState('');
  const [busy, setBusy] = useState(false);
  const names = known?.indices.map(({ name }) => name) ?? [];
  const split = splitLine(line);
  const endpoint = split === undefined ? undefined : endpointFor(catalog, split.method, split.path);
  const noBody = endpoint !== undefined && !endpoint.takesBody;
  const fields = useMemo(() => {
    const index = split?.path.split('/')[1];
    const own = known?.indices.find(({ name }) => name === index);
    return [
      ...new Set(
        (own === undefined ? (known?.indices ?? []) : [own]).flatMap((one) => one.fields.map(({ name }) => name)),
      ),
    ].sort();
  }, [known, split?.path]);
  const written = (): Written | undefined => (split === undefined ? undefined : { ...split, body });

  const run = (): void => {
    const wanted = written();
    setAnswer(undefined);
    setError('');
    if (wanted === undefined) {
      setError('Write a method and a path, as in: GET /_cat/indices?v');
      return;
    }
    const plan = planFor(catalog, wanted);
    if ('refused' in plan) {
      setError(plan.refused);
      return;
    }
    const { method, path } = plan.send;
    const sent =
      plan.send.body === ''
        ? undefined
        : bodyType(path) === 'application/x-ndjson'
          ? `${plan.send.body.trim()}\n`
          : plan.send.body;
    setBusy(true);
    send(method, path, sent)
      .then(
        (reply) => {
          setAnswer({ ...reply, says: plan.says });
          const next = [
            { line, body: noBody || body.length > LONGEST_KEPT ? '' : body, status: reply.status },
            ...past.filter((one) => one.line !== line || one.body !== body),
          ].slice(0, KEPT);
          setPast(next);
          sessionStorage.setItem(HISTORY, JSON.stringify(next));
        },
        (failure: unknown) => {
          setError((failure as Error).message);
        },
      )
      .finally(() => {
        setBusy(false);
      });
  };
  const take = (nextLine: string, nextBody: string): void => {
    setLine(nextLine);
    setBody(nextBody);
    setAnswer(undefined);
    setError('');
  };
  return (
    <>
      <Head title="Requests">
        <a class="button quiet" href="/_docs/api">
          All endpoints
        </a>
      </Head>
      <div class="request-columns">
        <form
          class="request"
          onSubmit={(event) => {
            event.preventDefault();
            run();
          }}
        >
          <div class="request-line">
            <Suggesting
              label="Method and path"
              value={line}
              onValue={setLine}
              complete={(text) => ({ from: 0, words: completeLine(text, catalog, names) })}
              onRun={run}
            />
            <button disabled={busy}>Send</button>
          </div>
          <p class="small about">
            {endpoint === undefined ? 'no endpoint has this method and path' : endpoint.summary}
          </p>
          <Suggesting
            label="Body"
            isLong
            isDim={noBody && body !== ''}
            value={body}
            onValue={setBody}
            complete={(text, at) => completeBody(text, at, endpoint?.body, fields)}
            onRun={run}
          />
          {noBody && body !== '' && (
            <Note kind="warn">
              {endpoint.method} {endpoint.path} takes no body: what is in the box is not sent.{' '}
              <button
                type="button"
                class="link"
                onClick={() => {
                  setBody('');
                }}
              >
                Empty it
              </button>
            </Note>
          )}
          {split?.method === 'GET' && body.trim() !== '' && endpoint?.sameAsPost === true && (
            <Note>
              A browser cannot send a body with GET. This goes out as POST, which is the same here; copied code sends
              the GET.
            </Note>
          )}
          <div class="buttons">
            <button
              type="button"
              class="quiet"
              disabled={body.trim() === ''}
              onClick={() => {
                setBody(layOut(body));
              }}
            >
              Format
            </button>
            <CopyAs written={written} noBody={noBody} />
          </div>
        </form>
        <section class="answer" aria-label="Answer" aria-live="polite">
          {error !== '' && <Note kind="bad">{error}</Note>}
          {answer === undefined && error === '' && (
            <p class="small">{busy ? 'Asking …' : 'The answer will appear here.'}</p>
          )}
          {answer !== undefined && <Answered answer={answer} />}
        </section>
      </div>
      <section class="past">
        <h2>Examples</h2>
        <div class="chips">
          {examplesFor(known?.indices ?? []).map(([label, one, itsBody]) => (
            <button
              key={label}
              type="button"
              class="chip"
              onClick={() => {
                take(one, itsBody);
              }}
            >
              {label}
            </button>
          ))}
        </div>
        {past.length > 0 && (
          <>
            <div class="one-head">
              <h2>History</h2>
              <button
                type="button"
                class="quiet"
                onClick={() => {
                  sessionStorage.removeItem(HISTORY);
                  setPast([]);
                }}
              >
                Forget it
              </button>
            </div>
            <ul class="list">
              {past.map((one, at) => (
                <li key={at}>
                  <button
                    type="button"
                    onClick={() => {
                      take(one.line, one.body);
                    }}
                  >
                    <code>{one.line}</code>
                    <span>
                      {one.status}
                      {one.body === '' ? '' : ` · ${one.body.replace(/\s+/g, ' ').slice(0, 80)}`}
                    </span>
                  </button>
                </li>
              ))}
            </ul>
          </>
        )}
      </section>
    </>
  );
}

function Answered({ answer }: { readonly answer: Answer }): JSX.Element {
  const value = parsed(answer.text);
  const text = typeof value === 'string' ? value : JSON.stringify(value, null, 2);
  const wrong = sentences(value);
  return (
    <>
      <div class="one-head">
        <h2 class={answer.ok ? 'good' : 'bad'}>{answer.status}</h2>
        <span class="small">{duration(answer.ms)}</span>
        <Copy text={() => text} label="Copy the answer" />
      </div>
      {answer.says !== undefined && <Note>{answer.says}</Note>}
      {answer.warnings.map((sentence) => (
        <Note key={sentence}>{sentence}</Note>
      ))}
      {!answer.ok && wrong !== '' && <Note kind="bad">{wrong}</Note>}
      <pre tabIndex={0} aria-label="The answer">
        {text === '' ? '(nothing)' : <Json text={text} />}
      </pre>
    </>
  );
}

function CopyAs({
  written,
  noBody,
}: {
  readonly written: () => Written | undefined;
  readonly noBody: boolean;
}): JSX.Element {
  const [language, setLanguage] = useState<Language>('curl');
  const select = useRef<HTMLSelectElement>(null);
  const code = (): string => {
    const request = written();
    return request === undefined ? '' : asCode(language, location.origin, noBody ? { ...request, body: '' } : request);
  };
  return (
    <span class="copy-as">
      <select
        ref={select}
        aria-label="Copy as"
        value={language}
        onChange={(event) => {
          setLanguage(event.currentTarget.value as Language);
        }}
      >
        {LANGUAGES.map((one) => (
          <option key={one}>{one}</option>
        ))}
      </select>
      <Copy text={code} label={`Copy as ${language}`} />
    </span>
  );
}

/** JSON with two spaces; lines of JSON, and what is not JSON, stay as they are. */
function layOut(body: string): string {
  const value = parsed(body);
  return typeof value === 'string' ? body : JSON.stringify(value, null, 2);
}
