// Whether a server that did the same all the time stayed the same.

const MIB = 2 ** 20;

/**
 * How much a figure may grow from the first quarter to the last: by a factor, and by so much besides. Of each quarter the median counts,
 * unless `of` says otherwise.
 */
export const BOUNDS = {
  anonymousBytes: { times: 1.1, plus: 16 * MIB, name: 'anonymous memory' },
  descriptors: { times: 1.1, plus: 8, name: 'open descriptors' },
  threads: { times: 1.1, plus: 2, name: 'threads' },
  // It grows for a minute until the log is trimmed, so that a median depends on when one looks.
  diskPerDocument: { times: 1.25, plus: 512, name: 'disk for each live document, at most', of: highest },
  p99: { times: 1.5, plus: 5, name: 'p99 of searches' },
};

/** The same for less than a minute: caches still fill, logs wait for the minute's flush, and a p99 is one of a few dozen searches. */
export const SHORT_BOUNDS = {
  ...BOUNDS,
  anonymousBytes: { ...BOUNDS.anonymousBytes, times: 1.4, plus: 64 * MIB },
  descriptors: { ...BOUNDS.descriptors, times: 1.5, plus: 20 },
  threads: { ...BOUNDS.threads, times: 1.3, plus: 6 },
  diskPerDocument: { ...BOUNDS.diskPerDocument, times: 2, plus: 16 * 1024 },
  p99: { ...BOUNDS.p99, times: 4, plus: 50 },
};

function highest(numbers) {
  return Math.max(...numbers);
}

function median(numbers) {
  const sorted = [...numbers].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/** Medians of the first and the last quarter of the windows, by figure, and whether each stayed within its bound. */
export function growth(windows, bounds = BOUNDS) {
  const quarter = Math.max(1, Math.floor(windows.length / 4));
  return Object.entries(bounds).map(([figure, { times, plus, name, of = median }]) => {
    const shownBy = (part) => of(part.map((window) => window[figure]));
    const [first, last] = [shownBy(windows.slice(0, quarter)), shownBy(windows.slice(-quarter))];
    const limit = first * times + plus;
    return { figure, name, first, last, limit, passed: Number.isFinite(last) && last <= limit };
  });
}

/** Every check of a soak: `{ name, passed, detail }`. */
export function checks({ windows, failures, unexpected, differences, ended }, bounds = BOUNDS) {
  const list = (name, sentences) => ({ name, passed: sentences.length === 0, detail: sentences });
  return [
    list('no failure of the server', failures),
    list('no unexpected answer', unexpected),
    list('the documents are those of the model', differences),
    list('the process ended when told to', ended),
    ...growth(windows, bounds).map(({ figure, name, first, last, limit, passed }) => {
      const [a, b, c] = [first, last, limit].map((value) => shown(figure, value));
      return { name, passed, detail: [`${a} in the first quarter, ${b} in the last, ${c} allowed`] };
    }),
  ];
}

function shown(figure, value) {
  if (figure === 'anonymousBytes') return `${(value / MIB).toFixed(1)} MiB`;
  if (figure === 'diskPerDocument') return `${value.toFixed(0)} bytes`;
  return figure === 'p99' ? `${value.toFixed(1)} ms` : String(value);
}

/** The windows as a table in Markdown: at most so many, evenly spread. */
export function table(windows, most = 16) {
  const step = Math.max(1, Math.ceil(windows.length / most));
  const shownOnes = windows.filter((_, at) => at % step === 0 || at === windows.length - 1);
  const lines = shownOnes.map((window) =>
    [
      window.seconds,
      (window.anonymousBytes / MIB).toFixed(0),
      (window.heapBytes / MIB).toFixed(0),
      window.descriptors,
      window.threads,
      (window.diskBytes / MIB).toFixed(1),
      window.documents,
      window.delayMs.toFixed(2),
      window.searches,
      window.p50.toFixed(1),
      window.p99.toFixed(1),
    ].join(' | '),
  );
  return [
    '| s | anonymous MiB | heap MiB | descriptors | threads | disk MiB | documents | loop delay ms | searches | p50 ms | p99 ms |',
    '|---|---|---|---|---|---|---|---|---|---|---|',
    ...lines.map((line) => `| ${line} |`),
  ].join('\n');
}
