// A hit in a column: its title, the passage that it was found by, and what its score is made of.
import type { JSX } from 'preact';

import { score } from '../lib/format';
import { Marked } from '../shell/parts';
import { type Kind, LABELS } from './fields';
import { type Hit, passageOf } from './results';
import { fromFirstWord, markWords, saidAs, telling } from './why';

/** Most tokens that a card names; the details have all. */
const NAMED = 3;
/** Most pieces that a bar is drawn of. */
const PIECES = 12;
const LONGEST = 320;

interface Props {
  readonly hit: Hit;
  readonly kind: Kind;
  readonly best: number;
  /** Places of the same document in the other columns. */
  readonly others: readonly (readonly [Kind, number | undefined])[];
  readonly isLit: boolean;
  readonly onLight: (key: string | undefined) => void;
  readonly onOpen: () => void;
}

export function HitCard({ hit, kind, best, others, isLit, onLight, onOpen }: Props): JSX.Element {
  const { document } = hit;
  const passage = passageOf(hit, kind);
  const light = (): void => {
    onLight(hit.key);
  };
  return (
    <li
      class={`hit ${isLit ? 'lit' : ''}`}
      data-key={hit.key}
      onMouseEnter={light}
      onMouseLeave={() => {
        onLight(undefined);
      }}
    >
      <button
        type="button"
        class="hit-open"
        data-hit
        onClick={onOpen}
        onFocus={light}
        onBlur={() => {
          onLight(undefined);
        }}
      >
        <span class="rank">{hit.rank}</span>
        <span class="hit-title">
          <Words text={document.title} words={hit.words} />
        </span>
      </button>
      {passage !== document.title && (
        <p class="passage">
          {passage.includes('<em>') ? (
            <Marked text={cut(begun(passage))} />
          ) : (
            <Words text={cut(fromFirstWord(passage, hit.words))} words={hit.words} />
          )}
        </p>
      )}
      <ScoreBar hit={hit} kind={kind} best={best} />
      <PartNames hit={hit} />
      {others.length > 0 && <Places others={others} />}
    </li>
  );
}

/** At what places the other columns have the same document. */
function Places({ others }: Pick<Props, 'others'>): JSX.Element {
  const found = others.filter(([, rank]) => rank !== undefined);
  return (
    <p class="elsewhere">
      {found.length === 0 && <span class="small">in no other column</span>}
      {found.map(([kind, rank]) => (
        <span key={kind} class={`place ${kind}`}>
          {LABELS[kind]} {rank}
        </span>
      ))}
    </p>
  );
}

/** A text with the words marked that a hit was found by. */
export function Words({ text, words }: { readonly text: string; readonly words: readonly string[] }): JSX.Element {
  return <>{markWords(text, words).map((piece, at) => (at % 2 === 1 ? <mark key={at}>{piece}</mark> : piece))}</>;
}

function ScoreBar({ hit, kind, best }: { readonly hit: Hit; readonly kind: Kind; readonly best: number }): JSX.Element {
  const share = best > 0 ? hit.score / best : 0;
  const sum = hit.parts.reduce((all, { value }) => all + value, 0);
  const pieces = hit.parts.filter(({ value }) => value > 0).slice(0, PIECES);
  const rest = sum - pieces.reduce((all, { value }) => all + value, 0);
  return (
    <div class="score">
      <span class="stack" aria-hidden="true">
        <span class={`stack-fill ${kind}`} style={{ width: `${share * 100}%` }}>
          {pieces.map((part, at) => (
            <i
              key={part.label}
              class={part.kind ?? `tone${at % 4}`}
              title={`${part.label}: ${score(part.value)}`}
              style={{ flexGrow: (part.value / sum) * 100 }}
            />
          ))}
          {(pieces.length === 0 || rest > sum * 0.01) && (
            <i class="rest" style={{ flexGrow: pieces.length === 0 ? 1 : (rest / sum) * 100 }} />
          )}
        </span>
      </span>
      <span class="score-value" title="score">
        {score(hit.score)}
      </span>
    </div>
  );
}

function PartNames({ hit }: { readonly hit: Hit }): JSX.Element | null {
  const { parts, passages, document } = hit;
  const text = [document.title, document.text, ...Object.values(passages).flat()].join(' ');
  const all = telling(parts.filter(({ value, kind }) => value > 0 && kind === undefined));
  const named = all.slice(0, NAMED);
  if (named.length === 0) return null;
  const more = all.length - named.length;
  return (
    <p class="tokens">
      {named.map((part) => (
        <span
          key={part.label}
          class="token"
          title={`${part.label}${part.word === undefined ? '' : `, from the word “${part.word}”`}: ${score(part.value)}`}
        >
          {saidAs(part, text)}
        </span>
      ))}
      {more > 0 && <span class="more">+{more}</span>}
    </p>
  );
}

/** A passage that begins within a sentence says so. */
function begun(passage: string): string {
  return /^(?:<em>)?\p{Ll}/u.test(passage) ? `… ${passage}` : passage;
}

function cut(text: string): string {
  if (text.length <= LONGEST) return text;
  // Marks stay whole: what is cut inside of one would open and never close.
  const start = text.slice(0, LONGEST);
  const open = start.lastIndexOf('<em>') > start.lastIndexOf('</em>') ? start.lastIndexOf('<em>') : start.length;
  return `${start.slice(0, open).replace(/<\/?e?m?$/, '')} …`;
}
