// What the demo and the benchmark print: steps, requests, progress bars, columns. In a log (no terminal) there are no colours
// and no redrawing: a bar is a line now and then.
import process from 'node:process';

const terminal = process.stdout.isTTY === true;
const colour = terminal && !process.env.NO_COLOR;
const paint = (code) => (text) => (colour ? `\u001b[${code}m${text}\u001b[0m` : text);

export const bold = paint('1');
export const dim = paint('2');
export const accent = paint('33');
export const good = paint('32');

export const number = (value) => Math.round(value).toLocaleString('en-US');
export const megabytes = (bytes) => `${number(bytes / 1e6)} MB`;
export const seconds = (milliseconds) => `${(milliseconds / 1000).toFixed(1)} s`;
export const duration = (milliseconds) =>
  milliseconds < 1000 ? `${Math.round(milliseconds)} ms` : seconds(milliseconds);

/** How wide a line may be; wider than 160 is hard to read. */
const lineWidth = () => Math.min(160, Math.max(72, process.stdout.columns ?? 120));

const BAR_WIDTH = 28;
const REDRAW_MS = { terminal: 60, log: 5000 };
/** The rate shown is over this much of the recent past. */
const RATE_WINDOW_MS = 5000;

export function step(title) {
  console.log(`\n${bold(title)}`);
}

/** A line under a step; `note` stands at its right end. */
export function line(text, note = '') {
  const gap = Math.max(2, Math.min(100, lineWidth()) - 2 - text.length - note.length);
  console.log(`  ${text}${note === '' ? '' : ' '.repeat(gap) + dim(note)}`);
}

/** A progress bar over `total` items. */
export class Bar {
  #begun = performance.now();
  #shown = -Infinity;
  #done = 0;
  #note = '';
  #recent = [];

  constructor(total) {
    this.total = total;
    if (terminal) this.update(0);
    else this.#shown = this.#begun;
    this.#recent.push({ now: this.#begun, done: 0 });
  }

  /** @param {string} [note] stands behind the figures, until another one comes */
  update(done, note = this.#note) {
    const now = performance.now();
    this.#done = done;
    this.#note = note;
    this.#recent.push({ now, done });
    while (this.#recent.length > 2 && now - this.#recent[0].now > RATE_WINDOW_MS) this.#recent.shift();
    if (now - this.#shown < (terminal ? REDRAW_MS.terminal : REDRAW_MS.log)) return;
    this.#shown = now;
    const first = this.#recent[0];
    const rate = (done - first.done) / Math.max(0.001, (now - first.now) / 1000);
    const left = rate > 0 ? `about ${duration((1000 * (this.total - done)) / rate)} left` : '';
    this.#draw(rate, left, note);
  }

  /** Draws the bar as it ended; answers how long it took. */
  end() {
    const elapsed = performance.now() - this.#begun;
    this.#draw(this.#done / (elapsed / 1000), seconds(elapsed), this.#note);
    if (terminal) process.stdout.write('\n');
    return elapsed;
  }

  #draw(rate, time, note) {
    const share = this.total === 0 ? 1 : Math.min(1, this.#done / this.total);
    const filled = Math.round(share * BAR_WIDTH);
    const bar = accent('━'.repeat(filled)) + dim('─'.repeat(BAR_WIDTH - filled));
    const count = `${number(this.#done).padStart(number(this.total).length)} of ${number(this.total)}`;
    const figures = [`${number(rate)} docs/s`.padStart(13), time, note].filter((text) => text !== '').join('  ');
    const drawn = `  ${bar} ${String(Math.floor(share * 100)).padStart(3)}%  ${count}  ${figures}`;
    process.stdout.write(terminal ? `\r\u001b[2K${drawn}` : `${drawn}\n`);
  }
}

/**
 * Two lists of cells beside each other, cut and padded to columns of one width.
 *
 * @param {{ text: string, paint?: (text: string) => string }[]} left
 * @param {{ text: string, paint?: (text: string) => string }[]} right
 */
export function columns(left, right) {
  const width = Math.floor((lineWidth() - 7) / 2);
  const fit = (cell) => {
    const text = (cell?.text ?? '').padEnd(width);
    const fitted = text.length > width ? `${text.slice(0, width - 1)}…` : text;
    return (cell?.paint ?? String)(fitted);
  };
  for (let row = 0; row < Math.max(left.length, right.length); row += 1) {
    console.log(`  ${fit(left[row])} ${dim('│')} ${fit(right[row])}`.trimEnd());
  }
}

/** Cells below one another, cut to the width of a line. */
export function list(cells) {
  const width = lineWidth() - 2;
  for (const { text, paint: painted = String } of cells) {
    console.log(`  ${painted(text.length > width ? `${text.slice(0, width - 1)}…` : text)}`);
  }
}

/** Rows of strings as an aligned table; the first row is the heading. */
export function table(rows) {
  const widths = rows[0].map((_, column) => Math.max(...rows.map((row) => row[column].length)));
  for (const [index, row] of rows.entries()) {
    const text = row.map((cell, column) => (column === 0 ? cell.padEnd(widths[0]) : cell.padStart(widths[column])));
    console.log(`  ${(index === 0 ? bold : String)(text.join('   '))}`);
  }
}
