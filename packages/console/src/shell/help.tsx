import type { JSX } from 'preact';

import type { Screen } from './app';
import { Dialog } from './parts';

export function Help({
  screens,
  onClose,
}: {
  readonly screens: readonly Screen[];
  readonly onClose: () => void;
}): JSX.Element {
  return (
    <Dialog title="Keyboard" onClose={onClose}>
      <dl class="keys-list">
        <dt>
          <kbd>/</kbd>
        </dt>
        <dd>go to the search box</dd>
        {screens.map(({ id, label, letter }) => (
          <>
            <dt key={id}>
              <kbd>g</kbd> <kbd>{letter}</kbd>
            </dt>
            <dd>{label}</dd>
          </>
        ))}
        <dt>
          <kbd>↑</kbd> <kbd>↓</kbd> <kbd>←</kbd> <kbd>→</kbd>
        </dt>
        <dd>move from hit to hit</dd>
        <dt>
          <kbd>Enter</kbd>
        </dt>
        <dd>opens a hit</dd>
        <dt>
          <kbd>Ctrl</kbd> <kbd>Enter</kbd>
        </dt>
        <dd>sends a request</dd>
        <dt>
          <kbd>Ctrl</kbd> <kbd>Space</kbd>
        </dt>
        <dd>completes what is being typed in a request</dd>
        <dt>
          <kbd>Esc</kbd>
        </dt>
        <dd>closes</dd>
      </dl>
      <p class="small">
        The <a href="/_docs">documentation</a>, and the interface behind all of this:{' '}
        <a href="/_docs/api">every endpoint</a> (<a href="/_openapi.json">/_openapi.json</a>)
      </p>
    </Dialog>
  );
}
