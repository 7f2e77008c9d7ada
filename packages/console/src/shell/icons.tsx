// Icons in one weight, drawn on a grid of 24; the words beside them say what they mean.
import type { JSX } from 'preact';

const PATHS = {
  search: 'M11 4a7 7 0 1 0 0 14 7 7 0 0 0 0-14zm9 16-4.1-4.1',
  add: 'M12 15V4m0 0L8 8m4-4 4 4M4 15v3a2 2 0 0 0 2 2h12a2 2 0 0 0 2-2v-3',
  indices:
    'M12 3c4.4 0 8 1.3 8 3s-3.6 3-8 3-8-1.3-8-3 3.6-3 8-3zm8 3v6c0 1.7-3.6 3-8 3s-8-1.3-8-3V6m16 6v6c0 1.7-3.6 3-8 3s-8-1.3-8-3v-6',
  encoder: 'M4 12h4m0 0 4-6h4m-8 6h8m-8 0 4 6h4M18 6h2M18 12h2M18 18h2',
  tasks: 'm4 6 1.5 1.5L8 5m3 1.5h9M4 12.5 5.5 14 8 11.5m3 1h9M4 19l1.5 1.5L8 18m3 1h9',
  models: 'M12 3 4 7.5v9L12 21l8-4.5v-9L12 3zm0 0v0m-8 4.5 8 4.5m0 0 8-4.5M12 12v9',
  keys: 'M15 4a5 5 0 1 1-4.6 7L4 17.4V20h3v-2h2v-2h2l1.2-1.2M16 8.5v.01',
  requests: 'm8 8-4 4 4 4m8-8 4 4-4 4m-2.5-11-3 14',
  sun: 'M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8zm0-5v2m0 14v2M3 12h2m14 0h2M5.6 5.6 7 7m10 10 1.4 1.4M5.6 18.4 7 17M17 7l1.4-1.4',
  moon: 'M20 14.5A8.5 8.5 0 0 1 9.5 4 8.5 8.5 0 1 0 20 14.5z',
  auto: 'M12 4a8 8 0 1 0 0 16V4zm0 0a8 8 0 0 1 0 16',
  close: 'M6 6l12 12M18 6 6 18',
  copy: 'M9 9h10v11H9zM5 15V4h10',
  out: 'M10 4H5v16h5m4-12 4 4-4 4m4-4H9',
  help: 'M9.5 9.5a2.5 2.5 0 1 1 3.6 2.2c-.8.4-1.1.9-1.1 1.8m0 3v.01M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18z',
  file: 'M6 3h8l4 4v14H6zM14 3v4h4',
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name }: { readonly name: IconName }): JSX.Element {
  return (
    <svg class="icon" viewBox="0 0 24 24" aria-hidden="true">
      <path d={PATHS[name]} />
    </svg>
  );
}

export function Bird(): JSX.Element {
  return (
    <svg class="bird" viewBox="0 0 32 32" aria-hidden="true">
      <path d="M3 20c5 1 8-1 10-5 2-5 6-7 10-5l5 1-4 3c0 8-6 13-13 12-4 0-7-3-8-6z" />
    </svg>
  );
}
