export const LOG_LEVELS = ['debug', 'info', 'warn', 'error', 'silent'] as const;

export type LogLevel = (typeof LOG_LEVELS)[number];

/** Writes one JSON line per event: `ts`, `level`, `msg`, and the event's own fields (`request_id`, `task_id`, …). */
export interface Logger {
  /** Whether `debug` writes anything: what is only said there need not be put together. */
  readonly debugging: boolean;
  debug(msg: string, fields?: Readonly<Record<string, unknown>>): void;
  info(msg: string, fields?: Readonly<Record<string, unknown>>): void;
  warn(msg: string, fields?: Readonly<Record<string, unknown>>): void;
  error(msg: string, fields?: Readonly<Record<string, unknown>>): void;
}

/** Logs go to standard error: standard output is for what a person asked to see. */
export function createLogger(
  threshold: LogLevel,
  write: (line: string) => void = (line) => process.stderr.write(line),
): Logger {
  const at = (level: LogLevel) => {
    if (LOG_LEVELS.indexOf(level) < LOG_LEVELS.indexOf(threshold)) return (): void => undefined;
    return (msg: string, fields: Readonly<Record<string, unknown>> = {}): void => {
      write(`${JSON.stringify({ ts: new Date().toISOString(), level, msg, ...fields })}\n`);
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
