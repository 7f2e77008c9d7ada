// Lines between the same document in neighbouring columns.
import type { JSX, RefObject } from 'preact';
import { useLayoutEffect, useState } from 'preact/hooks';

interface Line {
  readonly key: string;
  readonly path: string;
  readonly lit: boolean;
}

interface Props {
  readonly board: RefObject<HTMLElement | null>;
  /** What the columns show: the lines are drawn anew when it changes. */
  readonly drawn: unknown;
  readonly lit: string | undefined;
}

export function Lines({ board, drawn, lit }: Props): JSX.Element {
  const [lines, setLines] = useState<readonly Line[]>([]);
  useLayoutEffect(() => {
    const element = board.current;
    if (element === null) return undefined;
    const draw = (): void => {
      setLines(measure(element, lit));
    };
    draw();
    const observer = new ResizeObserver(draw);
    observer.observe(element);
    return () => {
      observer.disconnect();
    };
  }, [drawn, lit]);
  return (
    <svg class="lines" aria-hidden="true">
      {lines.map(({ key, path, lit: isLit }) => (
        <path key={key} d={path} class={isLit ? 'lit' : ''} />
      ))}
    </svg>
  );
}

function measure(board: HTMLElement, lit: string | undefined): Line[] {
  const frame = board.getBoundingClientRect();
  const columns = [...board.querySelectorAll<HTMLElement>('.column')];
  const cards = columns.map(
    (column) =>
      new Map(
        [...column.querySelectorAll<HTMLElement>('.hit')].map((card) => [
          card.dataset['key'] ?? '',
          card.getBoundingClientRect(),
        ]),
      ),
  );
  return cards.flatMap((left, at) => {
    const right = cards[at + 1];
    if (right === undefined) return [];
    return [...left].flatMap(([key, from]): Line[] => {
      const to = right.get(key);
      // Below one another, as on a phone, there is nothing to join.
      if (to === undefined || to.left <= from.right) return [];
      const [x1, y1] = [from.right - frame.left, from.top - frame.top + 22];
      const [x2, y2] = [to.left - frame.left, to.top - frame.top + 22];
      const bend = (x2 - x1) / 2;
      return [
        {
          key: `${at} ${key}`,
          path: `M${x1} ${y1}C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}`,
          lit: key === lit,
        },
      ];
    });
  });
}
