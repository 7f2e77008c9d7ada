export const LOG_LEVELS = ['debug', 'info', 'warn', 'error', 'silent'] as const;

export type LogLevel = (typeof LOG_LEVELS)[number];

export const LOG_FORMATS = ['json', 'text'] as const;

export type LogFormat = (typeof LOG_FORMATS)[number];

/** The format that was asked for; otherwise text for a person at a terminal, and JSON for what collects logs. */
export function formatFor(asked: LogFormat | undefined, isTerminal: boolean): LogFormat {
  return asked ?? (isTerminal ? 'text' : 'json');
}

/** Writes one line per event, JSON unless told otherwise: `ts`, `level`, `msg`, and the event's own fields (`request_id`, `task_id`, …). */
export interface Logger {
  /** Whether `debug` writes anything: what is only said there need not be put together. */
  readonly debugging: boolean;
  debug(msg: string, fields?: Readonly<Record<string, unknown>>): void;
  info(msg: string, fields?: Readonly<Record<string, unknown>>): void;
  warn(msg: string, fields?: Readonly<Record<string, unknown>>): void;
  error(msg: string, fields?: Readonly<Record<string, unknown>>): void;
}

let outlives = false;

/**
 * Writes to standard error. A server outlives a log that cannot be written, because its reader is gone or its disk is full: without
 * anybody who listens for it, the stream's failure would end the process.
 */
function writeToStandardError(line: string): void {
  if (!outlives) {
    outlives = true;
    for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined);
  }
  process.stderr.write(line);
}

/** Logs go to standard error: standard output is for what a person asked to see. */
export function createLogger(
  threshold: LogLevel,
  write: (line: string) => void = writeToStandardError,
  format: LogFormat = 'json',
): Logger {
  const at = (level: LogLevel) => {
    if (LOG_LEVELS.indexOf(level) < LOG_LEVELS.indexOf(threshold)) return (): void => undefined;
    return (msg: string, fields: Readonly<Record<string, unknown>> = {}): void => {
      const ts = new Date().toISOString();
      const line = format === 'json' ? JSON.stringify({ ts, level, msg, ...fields }) : asText(ts, level, msg, fields);
      write(`${printable(line)}\n`);
    };
  };
  return {
    debugging: threshold === 'debug',
    debug: at('debug'),
    info: at('info'),
    warn: at('warn'),
    error: at('error'),
  };
}

/**
 * What a terminal obeys or nobody sees: control characters, marks of direction, spaces without width, separators of lines, tags.
 * The engine's log has the same (`crates/node/src/log.rs`).
 */
const UNPRINTABLE =
  /[\p{Cc}\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|[\u{e0000}-\u{e007f}]/gu;

/** A line of a log with escapes as in JSON for all that a reader would not see as it is: clients choose ids, paths and headers. */
export function printable(line: string): string {
  return line.replace(UNPRINTABLE, (found) =>
    found
      .split('')
      .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
      .join(''),
  );
}

/** A line for people: time, level, sentence, then what belongs to it. A value with line breaks stays on the line. */
function asText(ts: string, level: string, msg: string, fields: Readonly<Record<string, unknown>>): string {
  const rest = Object.entries(fields)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => ` ${name}=${JSON.stringify(value)}`);
  return `${ts} ${level.toUpperCase().padEnd(5)} ${msg}${rest.join('')}`;
}
