// What several screens are made of.
import type { ComponentChildren, JSX } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';

import { Icon } from './icons';
import { Json } from './json';

/** The head of a screen: what it is, and what can be done with all of it. */
export function Head({
  title,
  children,
}: {
  readonly title: string;
  readonly children?: ComponentChildren;
}): JSX.Element {
  useEffect(() => {
    document.title = `${title} – Sparrow`;
  }, [title]);
  return (
    <div class="head">
      <h1>{title}</h1>
      <div class="actions">{children}</div>
    </div>
  );
}

export function Note({
  kind = 'plain',
  children,
}: {
  readonly kind?: 'plain' | 'bad' | 'warn' | 'good';
  readonly children: ComponentChildren;
}): JSX.Element {
  return (
    <div class={`note ${kind}`} role={kind === 'bad' ? 'alert' : 'status'}>
      {children}
    </div>
  );
}

/** What went wrong, if anything did. */
export function Problem({ text }: { readonly text: string | undefined }): JSX.Element | null {
  return text ? <Note kind="bad">{text}</Note> : null;
}

/** A bar of `share` of its width, from 0 to 1; words beside it say the number. */
export function Bar({ share, kind = '' }: { readonly share: number; readonly kind?: string }): JSX.Element {
  const width = `${Math.max(0, Math.min(1, share || 0)) * 100}%`;
  return (
    <span class={`bar ${kind}`} aria-hidden="true">
      <i style={{ width }} />
    </span>
  );
}

export function Progress({
  done,
  total,
  label,
}: {
  readonly done: number;
  readonly total: number;
  readonly label: string;
}): JSX.Element {
  return <progress aria-label={label} value={total > 0 ? done : undefined} max={Math.max(1, total)} />;
}

/** Puts a text into the clipboard, and says that it did. */
export function Copy({ text, label = 'Copy' }: { readonly text: () => string; readonly label?: string }): JSX.Element {
  const [done, setDone] = useState(false);
  const copy = (): void => {
    void copyText(text()).then(() => {
      setDone(true);
      setTimeout(() => {
        setDone(false);
      }, 1500);
    });
  };
  return (
    <button type="button" class="quiet" onClick={copy}>
      <Icon name="copy" /> {done ? 'Copied' : label}
    </button>
  );
}

async function copyText(text: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // Without TLS there is no clipboard but for this way, which every browser still has.
    const area = document.createElement('textarea');
    area.value = text;
    document.body.append(area);
    area.select();
    // eslint-disable-next-line @typescript-eslint/no-deprecated -- there is no other
    document.execCommand('copy');
    area.remove();
  }
}

/** A dialog over the page; closes with Escape, and gives the focus back. */
export function Dialog({
  title,
  side = false,
  onClose,
  children,
}: {
  readonly title: string;
  /** At the side, at full height, for what belongs to something on the page. */
  readonly side?: boolean;
  readonly onClose: () => void;
  readonly children: ComponentChildren;
}): JSX.Element {
  const ref = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const before = document.activeElement;
    ref.current?.showModal();
    return () => {
      if (before instanceof HTMLElement) before.focus();
    };
  }, []);
  return (
    <dialog
      ref={ref}
      class={side ? 'side' : ''}
      aria-label={title}
      onClose={onClose}
      onClick={(event) => {
        if (event.target === ref.current) onClose();
      }}
    >
      <div class="dialog">
        <div class="dialog-head">
          <h2>{title}</h2>
          <button type="button" class="icon-only" aria-label="Close" onClick={onClose}>
            <Icon name="close" />
          </button>
        </div>
        {children}
      </div>
    </dialog>
  );
}

/** JSON as it is, written only when somebody looks: vectors make long texts. */
export function Raw({
  title,
  value,
  open = false,
}: {
  readonly title: string;
  readonly value: unknown;
  readonly open?: boolean;
}): JSX.Element {
  const [shown, setShown] = useState(open);
  return (
    <details
      class="raw"
      open={open}
      onToggle={(event) => {
        setShown((event.target as HTMLDetailsElement).open);
      }}
    >
      <summary>{title}</summary>
      {shown && (
        <pre tabIndex={0} aria-label={title}>
          <Json text={typeof value === 'string' ? value : JSON.stringify(value, null, 2)} />
        </pre>
      )}
    </details>
  );
}

/** A text whose marks become elements: nothing of a document is ever taken for HTML. */
export function Marked({ text }: { readonly text: string }): JSX.Element {
  const parts = text.split(/<\/?em>/);
  return <>{parts.map((part, at) => (at % 2 === 1 ? <mark key={at}>{part}</mark> : part))}</>;
}

/** Where the keyboard is once the question is there: Escape and Enter both leave everything as it is. */
function focused(element: HTMLElement | null): void {
  element?.focus();
}

/** Asks before something that cannot be undone: the button becomes a question. */
export function Sure({
  label,
  question,
  onYes,
}: {
  readonly label: string;
  readonly question: string;
  readonly onYes: () => void;
}): JSX.Element {
  const [asked, setAsked] = useState(false);
  if (!asked) {
    return (
      <button
        type="button"
        class="quiet danger"
        onClick={() => {
          setAsked(true);
        }}
      >
        {label}
      </button>
    );
  }
  return (
    <span
      class="sure"
      onKeyDown={(event) => {
        if (event.key === 'Escape') setAsked(false);
      }}
    >
      {question}
      <button
        type="button"
        class="danger"
        onClick={() => {
          setAsked(false);
          onYes();
        }}
      >
        Yes
      </button>
      <button
        type="button"
        class="quiet"
        ref={focused}
        onClick={() => {
          setAsked(false);
        }}
      >
        No
      </button>
    </span>
  );
}

/** What somebody is told whose key may search, and may not see what there is to search by. */
export function Hidden({ names }: { readonly names: readonly string[] }): JSX.Element {
  return (
    <Note kind="warn">
      This key may not see the fields of {names.slice(0, 10).join(', ')}, so the console can show neither how to search
      them nor their documents. Use a key that has the privilege <code>view_index_metadata</code> besides{' '}
      <code>read</code>, as of <code>sparrow key new NAME --index {names[0]} --can read view_index_metadata</code>.
    </Note>
  );
}
