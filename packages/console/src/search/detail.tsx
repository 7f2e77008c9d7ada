// Everything about one hit: the whole text with the words it was found by, what each token added, and the explanation.
import type { JSX } from 'preact';

import { score } from '../lib/format';
import { useLoad } from '../lib/load';
import type { Index, Known } from '../lib/indices';
import { Bar, Dialog, Marked, Problem, Raw } from '../shell/parts';
import { call } from '../lib/api';
import { fusedLists, queryOf } from './body';
import { HINTS, type Kind, LABELS, type Way } from './fields';
import { Words } from './hit';
import type { Hit } from './results';
import { type Explanation, type Part, partsOf, readable, wordsOf } from './why';

interface Props {
  readonly hit: Hit;
  readonly way: Way;
  readonly ways: readonly Way[];
  readonly index: Index;
  readonly known: Known;
  readonly text: string;
  readonly onClose: () => void;
}

interface Why {
  readonly kind: Kind;
  readonly matched: boolean;
  readonly explanation: Explanation;
}

/** Explains a document for a way, or for each list that a fused way is made of. */
async function explain({ hit, way, ways, index, known, text }: Omit<Props, 'onClose'>): Promise<Why[]> {
  const models = { sparse: known.models.sparse[0] ?? '', dense: known.models.dense[0] ?? '' };
  const wanted = way.kind === 'hybrid' ? fusedLists(ways).flatMap((list) => list.way ?? []) : [way];
  const path = `/${encodeURIComponent(index.name)}/_explain/${encodeURIComponent(hit.id)}?_source=false`;
  return Promise.all(
    wanted.map(async (one) => {
      const answer = await call<{ matched: boolean; explanation: Explanation }>('POST', path, {
        query: queryOf(one, text, models),
      });
      return { kind: one.kind, matched: answer.matched, explanation: answer.explanation };
    }),
  );
}

export function Detail(props: Props): JSX.Element {
  const { hit, way, onClose } = props;
  const { value: whys, error } = useLoad(() => explain(props), [hit.key, way.kind]);
  const { document } = hit;
  const words = [...new Set([...hit.words, ...(whys ?? []).flatMap((why) => wordsOf(partsOf(why.explanation)))])];
  const passages = Object.entries(hit.passages).filter(([field]) => field !== document.titleField);
  return (
    <Dialog title={document.title} side onClose={onClose}>
      <p class="small">
        <code>{hit.index}</code> · <code>{hit.id}</code> · {LABELS[way.kind]} {hit.rank}, score {score(hit.score)}
      </p>
      {document.text !== '' && (
        <p class="whole">
          <Words text={document.text} words={words} />
        </p>
      )}
      {document.rest.length > 0 && (
        <dl class="values">
          {document.rest.map(([name, value]) => (
            <div key={name}>
              <dt>{name}</dt>
              <dd>{short(value)}</dd>
            </div>
          ))}
        </dl>
      )}
      <Problem text={error} />
      {way.kind === 'hybrid' && whys !== undefined && (
        <p class="small">
          The hybrid score adds up how far this document stands above the mean of each of these lists:
        </p>
      )}
      {whys?.map((why) => (
        <WhyTable key={why.kind} why={why} />
      ))}
      {passages.length > 0 && (
        <details>
          <summary>Passages that were found</summary>
          {passages.map(([field, texts]) => (
            <section key={field}>
              <h3>{field}</h3>
              {texts.map((passage, at) => (
                <blockquote key={at}>
                  <Marked text={passage} />
                </blockquote>
              ))}
            </section>
          ))}
        </details>
      )}
      <Raw title="The document as JSON" value={hit.source} />
      {hit.explanation !== undefined && <Raw title="The explanation as JSON" value={hit.explanation} />}
    </Dialog>
  );
}

function WhyTable({ why }: { readonly why: Why }): JSX.Element {
  const parts = partsOf(why.explanation);
  const best = parts[0]?.value ?? 0;
  return (
    <section class="why">
      <h3 class={why.kind} title={HINTS[why.kind]}>
        {LABELS[why.kind]} <span>{why.matched ? score(why.explanation.value) : 'does not match'}</span>
      </h3>
      {why.matched && parts.length > 0 && (
        <table>
          <thead>
            <tr>
              <th>{why.kind === 'words' ? 'Word' : 'Token'}</th>
              {why.kind === 'meaning' && <th class="number">question × text</th>}
              <th>adds</th>
            </tr>
          </thead>
          <tbody>
            {parts.map((part) => (
              <Row key={part.label} part={part} best={best} kind={why.kind} />
            ))}
          </tbody>
        </table>
      )}
      {why.matched && parts.length === 0 && (
        <p class="small">
          {why.kind === 'dense'
            ? 'How close the vectors of the question and of the text are. The numbers in a dense vector do not stand for words, so there is nothing more to show.'
            : why.explanation.description}
        </p>
      )}
    </section>
  );
}

function Row({ part, best, kind }: { readonly part: Part; readonly best: number; readonly kind: Kind }): JSX.Element {
  return (
    <tr>
      <td>
        {readable(part.label)}
        {part.word !== undefined && kind === 'meaning' && part.word.toLowerCase() !== part.label && (
          <span class="from"> ← {part.word}</span>
        )}
      </td>
      {kind === 'meaning' && (
        <td class="number">
          {part.weights === undefined ? '' : `${score(part.weights[0])} × ${score(part.weights[1])}`}
        </td>
      )}
      <td class="adds">
        <Bar share={best > 0 ? part.value / best : 0} kind={kind} /> {score(part.value)}
      </td>
    </tr>
  );
}

function short(value: unknown): string {
  if (Array.isArray(value) && value.length > 32 && value.every((one) => typeof one === 'number'))
    return `${value.length} numbers`;
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  return text.length > 400 ? `${text.slice(0, 400)} …` : text;
}
