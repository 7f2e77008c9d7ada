// The columns of a search, with lines between the same documents, and what the keyboard does in them.
import type { JSX } from 'preact';
import { useMemo, useRef, useState } from 'preact/hooks';

import type { Index, Known } from '../lib/indices';
import { Raw } from '../shell/parts';
import { Detail } from './detail';
import { HINTS, LABELS, type Way } from './fields';
import { HitCard } from './hit';
import { Lines } from './lines';
import { type Hit, type Result, ranksOf } from './results';

interface Props {
  readonly results: readonly Result[];
  readonly ways: readonly Way[];
  readonly index: Index;
  readonly known: Known;
  readonly text: string;
  readonly filter: string;
}

export function Board({ results, ways, index, known, text, filter }: Props): JSX.Element {
  const board = useRef<HTMLDivElement>(null);
  const [lit, setLit] = useState<string>();
  const [open, setOpen] = useState<{ hit: Hit; way: Way }>();
  const ranks = useMemo(() => ranksOf(results), [results]);
  const kinds = results.map(({ way }) => way.kind);
  return (
    <>
      <div
        class={`board columns-${results.length}`}
        ref={board}
        onKeyDown={(event) => {
          move(event, board.current);
        }}
      >
        <Lines board={board} drawn={results} lit={lit} />
        {results.map((result) => (
          <section key={result.way.kind} class={`column ${result.way.kind}`} aria-label={LABELS[result.way.kind]}>
            <header title={HINTS[result.way.kind]}>
              <h2>{LABELS[result.way.kind]}</h2>
              <span class="small">
                {result.total} found, {result.took} ms
              </span>
            </header>
            {result.hits.length === 0 && (
              <p class="none">
                {result.way.kind === 'words' ? 'No document has these words' : 'Nothing was found'}
                {filter.trim() === '' ? '' : ` where ${filter.trim()}`}.
              </p>
            )}
            <ol>
              {result.hits.map((hit) => (
                <HitCard
                  key={hit.key}
                  hit={hit}
                  kind={result.way.kind}
                  best={result.best}
                  others={kinds
                    .filter((kind) => kind !== result.way.kind)
                    .map((kind) => [kind, ranks.get(hit.key)?.get(kind)] as const)}
                  isLit={lit === hit.key}
                  onLight={setLit}
                  onOpen={() => {
                    setOpen({ hit, way: result.way });
                  }}
                />
              ))}
            </ol>
            <Phases result={result} />
            <Raw title="The request" value={`POST /${index.name}/_search\n${JSON.stringify(result.body, null, 2)}`} />
          </section>
        ))}
      </div>
      {open !== undefined && (
        <Detail
          {...open}
          ways={ways}
          index={index}
          known={known}
          text={text}
          onClose={() => {
            setOpen(undefined);
          }}
        />
      )}
    </>
  );
}

const PHASES: Readonly<Record<string, string>> = {
  tokenize_in_nanos: 'splitting into tokens',
  queue_in_nanos: 'waiting for the model',
  infer_in_nanos: 'the model',
  search_in_nanos: 'searching',
  fuse_in_nanos: 'fusing',
  fetch_in_nanos: 'reading hits',
  highlight_in_nanos: 'marking passages',
  explain_in_nanos: 'explaining',
};

/** Where the time of a search went; what it did not do is left out. */
function Phases({ result }: { readonly result: Result }): JSX.Element | null {
  const rows = Object.entries(result.phases)
    .filter(([, nanos]) => nanos > 0)
    .map(([name, nanos]): [string, number] => [
      (Object.hasOwn(PHASES, name) ? PHASES[name] : undefined) ?? name,
      nanos / 1e6,
    ]);
  if (rows.length === 0) return null;
  return (
    <details class="phases">
      <summary>Where the time went</summary>
      <dl>
        {rows.map(([name, ms]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{ms.toFixed(2)} ms</dd>
          </div>
        ))}
      </dl>
    </details>
  );
}

/** Arrows go from hit to hit: up and down in a column, left and right to the neighbour at the same place. */
function move(event: KeyboardEvent, board: HTMLElement | null): void {
  const column = (event.target as HTMLElement).closest('.column');
  if (board === null || column === null || !(event.target as HTMLElement).matches('[data-hit]')) return;
  const columns = [...board.querySelectorAll('.column')].map((one) => [
    ...one.querySelectorAll<HTMLElement>('[data-hit]'),
  ]);
  const x = [...board.querySelectorAll('.column')].indexOf(column);
  const y = columns[x]?.indexOf(event.target as HTMLElement) ?? 0;
  const beside = (list: HTMLElement[] | undefined): HTMLElement | undefined => list?.[Math.min(y, list.length - 1)];
  const to = {
    ArrowDown: columns[x]?.[y + 1],
    ArrowUp: columns[x]?.[y - 1],
    ArrowLeft: beside(columns[x - 1]),
    ArrowRight: beside(columns[x + 1]),
  }[event.key];
  if (to === undefined) return;
  event.preventDefault();
  to.focus();
}
