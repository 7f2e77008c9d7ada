import { type Sink, counted, duration, number } from './terminal.js';

const BAR_WIDTH = 24;
const REDRAW_MS = 80;
/** The rate shown is that of so many of the last milliseconds. */
const WINDOW_MS = 5000;
/** To the begin of the line, and away with it. */
const CLEAR = '\r\u001b[2K';

/** Progress beside a result: shown unless the result is for a program. */
export function progressBeside(isJson: boolean, sink: Sink, one: string): Progress {
  return new Progress(isJson ? { ...sink, isTerminal: false } : sink, one);
}

/** How long something may take before it is said that it goes on. */
const PATIENCE_MS = 1000;

/** Says on a terminal what is waited for where it takes long, and takes that away at the end. */
export async function whileWaiting<T>(sink: Sink, sentence: string, work: Promise<T>): Promise<T> {
  if (!sink.isTerminal) return work;
  let clear = (): void => undefined;
  const timer = setTimeout(() => {
    sink.write(sink.dim(sentence));
    clear = () => {
      sink.steer(CLEAR);
    };
  }, PATIENCE_MS);
  try {
    return await work;
  } finally {
    clearTimeout(timer);
    clear();
  }
}

/** How far something has come: a bar with rate and time left on a terminal, nothing elsewhere. */
export class Progress {
  readonly #sink: Sink;
  readonly #counted: (value: number) => string;
  readonly #recent: { at: number; done: number }[] = [];
  #shown = -Infinity;

  /** @param one what is counted, such as `document`; `many` is what several are called */
  constructor(sink: Sink, one: string, many?: string) {
    this.#sink = sink;
    this.#counted = (value) => counted(value, one, many);
  }

  /**
   * @param done how many are done
   * @param share the part of all that is done, from 0 to 1; undefined where the end is not known
   */
  update(done: number, share: number | undefined, note = ''): void {
    if (!this.#sink.isTerminal) return;
    const at = performance.now();
    this.#recent.push({ at, done });
    while (this.#recent.length > 2 && at - (this.#recent[0]?.at ?? at) > WINDOW_MS) this.#recent.shift();
    if (at - this.#shown < REDRAW_MS) return;
    this.#shown = at;
    this.#draw(done, share, note);
  }

  /** Takes the bar away, so that something else can be written. */
  clear(): void {
    if (this.#sink.isTerminal && this.#shown > -Infinity) this.#sink.steer(CLEAR);
    this.#shown = -Infinity;
  }

  #draw(done: number, share: number | undefined, note: string): void {
    const [first, last] = [this.#recent[0], this.#recent.at(-1)];
    const seconds = ((last?.at ?? 0) - (first?.at ?? 0)) / 1000;
    const rate = seconds > 0.2 ? (done - (first?.done ?? 0)) / seconds : 0;
    const left =
      share === undefined || rate === 0 || share === 0 ? '' : `${duration((1000 * (done / share - done)) / rate)} left`;
    const { accent, dim } = this.#sink;
    const filled = Math.round(Math.min(1, share ?? 0) * BAR_WIDTH);
    const bar =
      share === undefined
        ? ''
        : `${accent('━'.repeat(filled))}${dim('─'.repeat(BAR_WIDTH - filled))} ${String(Math.floor(share * 100)).padStart(3)}%  `;
    const figures = [this.#counted(done), rate > 0 ? `${number(rate)}/s` : '', left, note];
    this.#sink.steer(CLEAR);
    this.#sink.write(`${bar}${figures.filter((text) => text !== '').join('  ')}`);
  }
}
