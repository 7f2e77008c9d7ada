// The frame: who asks (the key), where one is (the screen), and the keys of the keyboard that hold everywhere.
import type { JSX } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';

import { isUploading } from '../add/bulk';
import { AddScreen } from '../add/screen';
import { EncoderScreen } from '../encoder/screen';
import { IndicesScreen } from '../indices/screen';
import { KeysScreen } from '../keys/screen';
import { call, storeKey, storedKey } from '../lib/api';
import { address, go, useRoute } from '../lib/route';
import { ModelsScreen } from '../models/screen';
import { RequestsScreen } from '../requests/screen';
import { SearchScreen } from '../search/screen';
import { TasksScreen } from '../tasks/screen';
import { Help } from './help';
import { Bird, Icon, type IconName } from './icons';
import { Note } from './parts';
import { useTheme } from './theme';

export interface Screen {
  readonly id: IconName;
  readonly label: string;
  /** What goes there after `g`. */
  readonly letter: string;
  readonly view: () => JSX.Element;
}

export const SCREENS: readonly Screen[] = [
  { id: 'search', label: 'Search', letter: 's', view: SearchScreen },
  { id: 'add', label: 'Add data', letter: 'a', view: AddScreen },
  { id: 'indices', label: 'Documents', letter: 'd', view: IndicesScreen },
  { id: 'encoder', label: 'Encoder', letter: 'e', view: EncoderScreen },
  { id: 'tasks', label: 'Tasks', letter: 't', view: TasksScreen },
  { id: 'models', label: 'Models', letter: 'm', view: ModelsScreen },
  { id: 'keys', label: 'Keys', letter: 'k', view: KeysScreen },
  { id: 'requests', label: 'Requests', letter: 'r', view: RequestsScreen },
];

export function App(): JSX.Element {
  const [key, setKey] = useState(storedKey);
  const { screen } = useRoute();
  const [help, setHelp] = useState(false);
  // A screen begins anew where its link is used while it is shown.
  const [visit, setVisit] = useState(0);
  const status = useHealth();
  const wasDown = useRef(false);
  useEffect(() => {
    if (status === 'unreachable') wasDown.current = true;
    if (status !== 'ready' || !wasDown.current) return;
    wasDown.current = false;
    // The question is in the address, so it is asked again. Other screens may hold what is not sent yet.
    if (shown?.id === 'search') setVisit((before) => before + 1);
  }, [status]);
  const shown = SCREENS.find(({ id }) => id === screen) ?? SCREENS[0];
  useShortcuts(() => {
    setHelp(true);
  });
  const leave = (): void => {
    storeKey('');
    setKey('');
  };
  return (
    <>
      <a
        class="skip"
        href="#main"
        onClick={(event) => {
          event.preventDefault();
          document.querySelector<HTMLElement>('main')?.focus();
        }}
      >
        To the content
      </a>
      <Top
        status={status}
        signedIn={key !== ''}
        onLeave={leave}
        onHelp={() => {
          setHelp(true);
        }}
      />
      <div class={key === '' ? 'frame alone' : 'frame'}>
        {key !== '' && (
          <nav aria-label="Screens">
            {SCREENS.map(({ id, label, letter }) => (
              <a
                key={id}
                href={address(id)}
                aria-current={id === shown?.id ? 'page' : undefined}
                title={`g ${letter}`}
                onClick={(event) => {
                  // With one of these keys the link is for another tab.
                  const isElsewhere = event.ctrlKey || event.metaKey || event.shiftKey;
                  if (id === shown?.id && !isElsewhere && !isUploading()) setVisit(visit + 1);
                }}
              >
                <Icon name={id} />
                <span>{label}</span>
              </a>
            ))}
          </nav>
        )}
        <main id="main" tabIndex={-1}>
          {key === '' || shown === undefined ? <SignIn onKey={setKey} /> : <shown.view key={`${shown.id} ${visit}`} />}
        </main>
      </div>
      {help && (
        <Help
          screens={SCREENS}
          onClose={() => {
            setHelp(false);
          }}
        />
      )}
    </>
  );
}

const THEMES = { auto: 'as the system', dark: 'dark', light: 'light' } as const;
const THEME_ICONS = { auto: 'auto', dark: 'moon', light: 'sun' } as const;

function Top({
  status,
  signedIn,
  onLeave,
  onHelp,
}: {
  readonly status: string;
  readonly signedIn: boolean;
  readonly onLeave: () => void;
  readonly onHelp: () => void;
}): JSX.Element {
  const [theme, nextTheme] = useTheme();
  return (
    <header class="top">
      <a class="brand" href={address('search')}>
        <Bird />
        Sparrow
      </a>
      <span class={`health ${status === 'ready' ? 'up' : ''}`} role="status">
        {status}
      </span>
      <a class="small" href="/_docs">
        Docs
      </a>
      <button
        type="button"
        class="icon-only"
        aria-label={`Colours: ${THEMES[theme]}`}
        title={`Colours: ${THEMES[theme]}`}
        onClick={nextTheme}
      >
        <Icon name={THEME_ICONS[theme]} />
      </button>
      <button type="button" class="icon-only" aria-label="Keyboard" title="Keyboard (?)" onClick={onHelp}>
        <Icon name="help" />
      </button>
      {signedIn && (
        <button type="button" class="icon-only" aria-label="Forget the key" title="Forget the key" onClick={onLeave}>
          <Icon name="out" />
        </button>
      )}
    </header>
  );
}

/** What the server says of itself every few seconds; needs no key. */
function useHealth(): string {
  const [status, setStatus] = useState('…');
  useEffect(() => {
    const ask = (): void => {
      if (document.hidden) return;
      fetch('/_health', { credentials: 'omit' })
        .then((response) => response.json())
        .then(
          (answer: { status: string }) => {
            setStatus(answer.status);
          },
          () => {
            setStatus('unreachable');
          },
        );
    };
    ask();
    const timer = setInterval(ask, 5000);
    return () => {
      clearInterval(timer);
    };
  }, []);
  return status;
}

function SignIn({ onKey }: { readonly onKey: (key: string) => void }): JSX.Element {
  const [error, setError] = useState('');
  const [busy, setBusy] = useState(false);
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    const key = (new FormData(event.target as HTMLFormElement).get('key') as string).trim();
    setBusy(true);
    call('GET', '/_security/_authenticate', undefined, { key })
      .then(
        () => {
          storeKey(key);
          onKey(key);
        },
        (failure: unknown) => {
          setError((failure as Error).message);
        },
      )
      .finally(() => {
        setBusy(false);
      });
  };
  return (
    <form class="sign-in" onSubmit={submit}>
      <Bird />
      <h1>Search by meaning</h1>
      <p>Paste the owner key. Run this in the folder where you started the server:</p>
      <pre>cat data/owner.key</pre>
      <p class="small">
        If the server was started with <code>--data DIR</code>, it is in that folder: the first line that the server
        prints says where.
      </p>
      <label>
        API key
        <input name="key" type="password" autocomplete="off" spellcheck={false} required autofocus />
      </label>
      {error !== '' && <Note kind="bad">{error}</Note>}
      <button disabled={busy}>Open the console</button>
      <p class="small">
        The key stays in this tab and is forgotten with it. Everything on this page comes from this server.
      </p>
    </form>
  );
}

/** Where letters are text; in a box that is only ticked they are not. */
const TYPING = 'textarea, select, input:not([type=checkbox], [type=radio])';

/** `/` goes to the search, `g` and a letter to a screen, `?` shows what there is. */
function useShortcuts(onHelp: () => void): void {
  useEffect(() => {
    let going = 0;
    const pressed = (event: KeyboardEvent): void => {
      const target = event.target as HTMLElement;
      if (event.ctrlKey || event.metaKey || event.altKey || target.matches(TYPING)) return;
      if (document.querySelector('dialog[open]') !== null) return;
      if (event.key === '?') onHelp();
      else if (event.key === '/') {
        event.preventDefault();
        const box = document.querySelector<HTMLInputElement>('[data-search]');
        if (box === null) go('search');
        else box.focus();
      } else if (event.key === 'g') going = event.timeStamp;
      else if (event.timeStamp - going < 1500) {
        going = 0;
        const screen = SCREENS.find(({ letter }) => letter === event.key);
        if (screen !== undefined) go(screen.id);
      }
    };
    document.addEventListener('keydown', pressed);
    return () => {
      document.removeEventListener('keydown', pressed);
    };
  }, []);
}
