// A box to type in that proposes how to go on, as the pattern of a combobox has it.
import type { JSX } from 'preact';
import { useId, useLayoutEffect, useRef, useState } from 'preact/hooks';

import type { Completion } from './complete';

interface Props {
  readonly label: string;
  readonly value: string;
  readonly onValue: (value: string) => void;
  /** What can go on at a place. */
  readonly complete: (text: string, at: number) => Completion;
  readonly onRun: () => void;
  readonly isLong?: boolean;
  readonly isDim?: boolean;
}

const NONE: Completion = { from: 0, words: [] };

export function Suggesting({
  label,
  value,
  onValue,
  complete,
  onRun,
  isLong = false,
  isDim = false,
}: Props): JSX.Element {
  /** Where the caret goes once the box has the text with the word that was taken. */
  const caret = useRef<number | undefined>(undefined);
  const box = useRef<HTMLTextAreaElement & HTMLInputElement>(null);
  // Where something is proposed. What is proposed there is asked with each drawing: endpoints and fields may come after the letters.
  const [place, setPlace] = useState<number>();
  const [chosen, setChosen] = useState(0);
  const id = useId();
  const offered = place === undefined ? NONE : complete(value, place);
  const offer = (at: number): void => {
    setPlace(at);
    setChosen(0);
  };
  const close = (): void => {
    setPlace(undefined);
  };
  const take = (word: string): void => {
    const at = box.current?.selectionStart ?? value.length;
    const next = value.slice(0, offered.from) + word + value.slice(at);
    onValue(next);
    close();
    caret.current = offered.from + word.length;
  };
  const pressed = (event: KeyboardEvent): void => {
    const { words } = offered;
    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      onRun();
    } else if (event.key === ' ' && event.ctrlKey) {
      event.preventDefault();
      offer(box.current?.selectionStart ?? value.length);
    } else if (words.length > 0 && event.key === 'Escape') {
      event.preventDefault();
      close();
    } else if (words.length > 0 && (event.key === 'ArrowDown' || event.key === 'ArrowUp')) {
      event.preventDefault();
      setChosen((chosen + (event.key === 'ArrowDown' ? 1 : words.length - 1)) % words.length);
    } else if (words.length > 0 && (event.key === 'Tab' || (event.key === 'Enter' && isLong)) && !event.shiftKey) {
      event.preventDefault();
      take(words[Math.min(chosen, words.length - 1)] ?? '');
    }
  };
  // With the drawing itself: letters that are typed meanwhile must come behind the word.
  useLayoutEffect(() => {
    const at = caret.current;
    if (at === undefined) return;
    caret.current = undefined;
    box.current?.focus();
    box.current?.setSelectionRange(at, at);
  });
  const common = {
    ref: box,
    value,
    'aria-label': label,
    'aria-autocomplete': 'list',
    'aria-controls': id,
    ...(offered.words.length > 0 ? { 'aria-activedescendant': `${id}-${chosen}` } : {}),
    autocomplete: 'off',
    spellcheck: false,
    onKeyDown: pressed,
    onInput: (event: { currentTarget: HTMLInputElement | HTMLTextAreaElement }) => {
      const { value: text, selectionStart } = event.currentTarget;
      onValue(text);
      const at = selectionStart ?? text.length;
      // In a body only within quotation marks: elsewhere a list would be in the way.
      if (!isLong || /"[\w.@-]*$/.test(text.slice(0, at))) offer(at);
      else close();
    },
    onBlur: () => {
      close();
    },
  } as const;
  return (
    <div class={`suggesting ${isLong ? 'long' : ''}`}>
      {isLong ? (
        <textarea {...common} rows={14} class={isDim ? 'dim' : ''} placeholder="no body" />
      ) : (
        <input {...common} role="combobox" aria-expanded={offered.words.length > 0} />
      )}
      <ul id={id} role="listbox" aria-label={`How to go on: ${label}`} hidden={offered.words.length === 0}>
        {offered.words.map((word, at) => (
          <li
            key={word}
            id={`${id}-${at}`}
            role="option"
            aria-selected={at === chosen}
            onMouseDown={(event) => {
              event.preventDefault();
              take(word);
            }}
          >
            {word}
          </li>
        ))}
      </ul>
    </div>
  );
}
