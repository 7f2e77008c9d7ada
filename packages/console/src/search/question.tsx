// The box for the question: as tall as the question is long, so that a phone shows all of it.
import type { JSX } from 'preact';
import { useRef } from 'preact/hooks';

import { Icon } from '../shell/icons';

interface Props {
  readonly text: string;
  readonly onText: (text: string) => void;
}

export function Question({ text, onText }: Props): JSX.Element {
  const box = useRef<HTMLTextAreaElement>(null);
  const clear = (): void => {
    onText('');
    box.current?.focus();
  };
  // The style draws the text a second time, unseen: the box has the height of that.
  return (
    <div class="question" data-text={text}>
      <textarea
        ref={box}
        rows={1}
        data-search
        aria-label="Question"
        placeholder="Ask a question"
        autocomplete="off"
        enterkeyhint="search"
        autofocus
        value={text}
        onInput={(event) => {
          // A question is one line, also where several are pasted.
          onText(event.currentTarget.value.replace(/\s*[\r\n]+\s*/g, ' '));
        }}
        onKeyDown={(event) => {
          // While letters are composed, as in Japanese, these keys belong to the letters.
          if (event.isComposing) return;
          if (event.key === 'Enter') {
            event.preventDefault();
            event.currentTarget.form?.requestSubmit();
          } else if (event.key === 'Escape') {
            clear();
          }
        }}
      />
      {text !== '' && (
        <button type="button" class="icon-only" aria-label="Clear the question" onClick={clear}>
          <Icon name="close" />
        </button>
      )}
    </div>
  );
}
