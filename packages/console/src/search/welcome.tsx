// The first thing that somebody sees on a server that holds nothing yet.
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';

import { go } from '../lib/route';
import { Icon } from '../shell/icons';
import { Problem } from '../shell/parts';
import { EXAMPLE_INDEX, EXAMPLE_QUESTIONS, loadExample } from './example';

export function Welcome({ onLoaded }: { readonly onLoaded: () => void }): JSX.Element {
  const [error, setError] = useState('');
  const [busy, setBusy] = useState(false);
  const start = (): void => {
    setBusy(true);
    loadExample()
      .then(
        () => {
          go('search', { index: EXAMPLE_INDEX, q: EXAMPLE_QUESTIONS[0] });
          onLoaded();
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
    <div class="welcome">
      <p class="lead">This server holds nothing yet.</p>
      <div class="cards">
        <button type="button" class="card" onClick={start} disabled={busy}>
          <Icon name="search" />
          <b>{busy ? 'Loading …' : 'Try an example'}</b>
          <span>
            Thirty short texts, put into the index <code>{EXAMPLE_INDEX}</code>, and questions that share no words with
            their answers.
          </span>
        </button>
        <button
          type="button"
          class="card"
          onClick={() => {
            go('add');
          }}
        >
          <Icon name="add" />
          <b>Add your own data</b>
          <span>A JSON, CSV or text file from your disk, searchable by meaning in a moment.</span>
        </button>
        <button
          type="button"
          class="card"
          onClick={() => {
            go('encoder');
          }}
        >
          <Icon name="encoder" />
          <b>See how it works</b>
          <span>Watch the model turn a sentence into weighted words.</span>
        </button>
      </div>
      <Problem text={error} />
    </div>
  );
}
