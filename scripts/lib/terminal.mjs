// What the demo prints: steps, progress bars and columns. Without a terminal a bar is a line now and then.
import process from 'node:process';

const colour = process.stdout.isTTY && !process.env.NO_COLOR;
const paint = (code) => (text) => (colour ? `\u001b[${code}m${text}\u001b[0m` : text);

export const bold = paint('1');
export const dim = paint('2');
export const accent = paint('33');

export const number = (value) => Math.round(value).toLocaleString('en-US');
export const megabytes = (bytes) => `${number(bytes / 1e6)} MB`;
export const seconds = (milliseconds) => `${(milliseconds / 1000).toFixed(1)} s`;

export function step(title) {
  console.log(`\n${bold(`▸ ${title}`)}`);
}

/** A progress bar over `total` items; `note` stands behind it. */
export class Bar {
  #begun = performance.now();
  #shown = -Infinity;

  constructor(total) {
    this.total = total;
  }

  update(done, note = '') {
    const now = performance.now();
    // A terminal is redrawn, a log gets a line every five seconds.
    if (now - this.#shown < (process.stdout.isTTY ? 60 : 5000) && done < this.total) return;
    this.#shown = now;
    const share = this.total === 0 ? 1 : Math.min(1, done / this.total);
    const rate = done / Math.max(0.001, (now - this.#begun) / 1000);
    const filled = Math.round(share * 28);
    const bar = `${accent('━'.repeat(filled))}${dim('─'.repeat(28 - filled))}`;
    const line = `  ${bar} ${String(Math.floor(share * 100)).padStart(3)}%  ${number(done)}/${number(this.total)}  ${number(rate)}/s  ${note}`;
    process.stdout.write(process.stdout.isTTY ? `\r\u001b[2K${line}` : `${line}\n`);
  }

  end() {
    if (process.stdout.isTTY) process.stdout.write('\n');
    return performance.now() - this.#begun;
  }
}

/** Two lists beside each other. */
export function columns(left, right, width = Math.max(36, Math.floor(((process.stdout.columns ?? 100) - 6) / 2))) {
  for (let row = 0; row < Math.max(left.length, right.length); row += 1) {
    console.log(`  ${cut(left[row] ?? '', width)}  ${cut(right[row] ?? '', width)}`);
  }
}

function cut(text, width) {
  return (text.length > width ? `${text.slice(0, width - 1)}…` : text).padEnd(width);
}
