// The box for a filter in Lucene's syntax: it is used once it is left, or with Enter.
import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';

interface Props extends Pick<JSX.IntrinsicElements['input'], 'placeholder' | 'title'> {
  readonly value: string;
  readonly onFilter: (filter: string) => void;
}

export function FilterInput({ value, onFilter, ...others }: Props): JSX.Element {
  // Answers that arrive while one types draw the page anew, and must not take back what is typed.
  const [typed, setTyped] = useState(value);
  // A facet changes the filter, too.
  useEffect(() => {
    setTyped(value);
  }, [value]);
  return (
    <input
      {...others}
      value={typed}
      spellcheck={false}
      onInput={(event) => {
        setTyped(event.currentTarget.value);
      }}
      onChange={(event) => {
        onFilter(event.currentTarget.value);
      }}
    />
  );
}
