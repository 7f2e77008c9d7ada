// Encoder: how a model expands a text into weighted tokens, and what two texts have in common.
import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';

import { call } from '../lib/api';
import { weight as shown } from '../lib/format';
import { loadIndices } from '../lib/indices';
import { foreignLanguage } from '../../../cli/src/documents/language';
import { useLoad } from '../lib/load';
import { current, remember } from '../lib/route';
import { Head, Note, Problem } from '../shell/parts';
import { readable } from '../search/why';
import { tokensSaid } from './said';

interface Encoded {
  readonly tokens: readonly (readonly [string, number])[];
  readonly isTruncated: boolean;
}

const MOST_SHOWN = 28;
const TYPING_MS = 200;
const EXAMPLES: readonly (readonly [string, string])[] = [
  ['how do planes stay in the air', 'A wing pushes air down, and so the aircraft is lifted.'],
  ['movie about a boxer', 'Rocky is a film in which an underdog fights for the heavyweight title.'],
  ['the biggest animal', 'Blue whales are the largest mammals that ever lived.'],
];

async function encode(model: string, text: string): Promise<Encoded> {
  if (text.trim() === '') return { tokens: [], isTruncated: false };
  const answer = await call<{
    inference_results: { predicted_value: Record<string, number>; is_truncated?: boolean }[];
  }>('POST', `/_ml/trained_models/${encodeURIComponent(model)}/_infer`, { docs: [{ text_field: text }] });
  const [result] = answer.inference_results;
  return {
    tokens: Object.entries(result?.predicted_value ?? {}).sort(([, a], [, b]) => b - a),
    isTruncated: result?.is_truncated === true,
  };
}

export function EncoderScreen(): JSX.Element {
  const { value: known } = useLoad(loadIndices, []);
  const models = known?.models.sparse ?? [];
  const [model, setModel] = useState('');
  const used = model || models[0];
  const [first, setFirst] = useState(() => current().params.get('a') ?? EXAMPLES[0]?.[0] ?? '');
  const [second, setSecond] = useState(() => current().params.get('b') ?? EXAMPLES[0]?.[1] ?? '');
  const [a, setA] = useState<Encoded>();
  const [b, setB] = useState<Encoded>();
  const [error, setError] = useState('');
  useEffect(() => {
    remember('encoder', { a: first, b: second });
    if (used === undefined) return undefined;
    const timer = setTimeout(() => {
      Promise.all([encode(used, first), encode(used, second)]).then(
        ([one, other]) => {
          setA(one);
          setB(other);
          setError('');
        },
        (failure: unknown) => {
          setError((failure as Error).message);
        },
      );
    }, TYPING_MS);
    return () => {
      clearTimeout(timer);
    };
  }, [first, second, used]);
  const foreign = foreignLanguage(first) ?? foreignLanguage(second);
  return (
    <>
      <Head title="Encoder">
        {models.length > 1 && (
          <label class="field">
            <span>Model</span>
            <select
              value={used}
              onChange={(event) => {
                setModel(event.currentTarget.value);
              }}
            >
              {models.map((one) => (
                <option key={one}>{one}</option>
              ))}
            </select>
          </label>
        )}
      </Head>
      <p class="intro">
        A sparse model turns a text into tokens with weights: the words that matter in it, and others that could have
        been said instead. Two texts match by the tokens that they share.
      </p>
      <div class="pair">
        <label>
          A question
          <textarea
            rows={3}
            data-search
            value={first}
            onInput={(event) => {
              setFirst(event.currentTarget.value);
            }}
          />
        </label>
        <label>
          A text
          <textarea
            rows={3}
            value={second}
            onInput={(event) => {
              setSecond(event.currentTarget.value);
            }}
          />
        </label>
      </div>
      <div class="chips">
        {EXAMPLES.map(([question, text]) => (
          <button
            key={question}
            type="button"
            class="chip"
            onClick={() => {
              setFirst(question);
              setSecond(text);
            }}
          >
            {question}
          </button>
        ))}
      </div>
      {foreign !== undefined && (
        <Note kind="warn">This looks like {foreign}. The model that comes with the server reads English only.</Note>
      )}
      {(a?.isTruncated === true || b?.isTruncated === true) && (
        <Note kind="warn">
          The text is longer than the model reads, and was truncated after 512 tokens. Fields of type semantic_text
          split long texts into passages.
        </Note>
      )}
      <Problem text={error} />
      {a !== undefined && b !== undefined && (
        <>
          <Shared a={a} b={b} />
          <div class="pair">
            <Expansion title="The question becomes" text={first} encoded={a} other={b} />
            <Expansion title="The text becomes" text={second} encoded={b} other={a} />
          </div>
        </>
      )}
    </>
  );
}

interface Common {
  readonly token: string;
  readonly weights: readonly [number, number];
  readonly product: number;
}

function common(a: Encoded, b: Encoded): Common[] {
  const other = new Map(b.tokens);
  return a.tokens
    .flatMap(([token, weight]): Common[] => {
      const there = other.get(token);
      return there === undefined ? [] : [{ token, weights: [weight, there], product: weight * there }];
    })
    .sort((one, two) => two.product - one.product);
}

const SHARED_SHOWN = 12;

/** The tokens that both texts have, drawn as pairs of bars that grow from the middle; their products add up to the score. */
function Shared({ a, b }: { readonly a: Encoded; readonly b: Encoded }): JSX.Element {
  const pairs = common(a, b);
  const total = pairs.reduce((all, { product }) => all + product, 0);
  const most = Math.max(a.tokens[0]?.[1] ?? 1, b.tokens[0]?.[1] ?? 1);
  const drawn = pairs.slice(0, SHARED_SHOWN);
  return (
    <section class="shared">
      <h2>
        In common: <span class="meaning">{shown(total)}</span>
      </h2>
      {pairs.length === 0 ? (
        <p>The model makes no token of this text, so a search by sparse vectors would not find it.</p>
      ) : (
        <ol>
          {drawn.map(({ token, weights, product }) => (
            <li key={token} title={`${shown(weights[0])} × ${shown(weights[1])} = ${shown(product)}`}>
              <span class="half left" aria-hidden="true">
                <i style={{ width: `${(weights[0] / most) * 100}%` }} />
              </span>
              <span class="name">{readable(token)}</span>
              <span class="half right" aria-hidden="true">
                <i style={{ width: `${(weights[1] / most) * 100}%` }} />
              </span>
              <span class="weight">{shown(product)}</span>
            </li>
          ))}
        </ol>
      )}
      {pairs.length > drawn.length && <p class="small">and {pairs.length - drawn.length} more</p>}
    </section>
  );
}

function Expansion({
  title,
  text,
  encoded,
  other,
}: {
  readonly title: string;
  readonly text: string;
  readonly encoded: Encoded;
  readonly other: Encoded;
}): JSX.Element {
  const said = tokensSaid(
    text,
    encoded.tokens.map(([token]) => token),
  );
  const shared = new Set(other.tokens.map(([token]) => token));
  const [best = 1] = encoded.tokens.map(([, weight]) => weight);
  const [all, setAll] = useState(false);
  const drawn = all ? encoded.tokens : encoded.tokens.slice(0, MOST_SHOWN);
  const left = encoded.tokens.length - drawn.length;
  return (
    <section class="expansion">
      <h2>{title}</h2>
      <p class="small">
        {encoded.tokens.length} tokens. <span class="key said" /> said <span class="key added" /> added by the model;{' '}
        <u>underlined</u>: also in the other one
      </p>
      <ol>
        {drawn.map(([token, weight]) => (
          <li key={token} class={said.has(token) ? 'said' : 'added'}>
            <span class="name">{shared.has(token) ? <u>{readable(token)}</u> : readable(token)}</span>
            <span class="track" aria-hidden="true">
              <i style={{ width: `${(weight / best) * 100}%` }} />
            </span>
            <span class="weight">{shown(weight)}</span>
          </li>
        ))}
      </ol>
      {left > 0 && (
        <button
          type="button"
          class="quiet"
          onClick={() => {
            setAll(true);
          }}
        >
          {left} more
        </button>
      )}
    </section>
  );
}
