// Requests to the server that the page came from, and to nobody else.

import { warningTexts } from '../../../endpoints/src/warning-texts';

const STORED_KEY = 'sparrow-key';
/** A header takes no other letters. */
const KEY = /^[\x21-\x7e]+$/;

/** A request that was not carried out: its message can be shown as it is. */
export class Refused extends Error {
  constructor(
    message: string,
    readonly status = 0,
    readonly answer?: unknown,
    /** Seconds after which the server asks to be tried again. */
    readonly retryAfter?: number,
  ) {
    super(message);
  }
}

export interface Options {
  readonly signal?: AbortSignal | undefined;
  /** Another key than the one of this tab. */
  readonly key?: string;
}

/** What a request was answered with, whatever the status. */
export interface Reply {
  readonly status: number;
  readonly ok: boolean;
  readonly text: string;
  readonly type: string;
  /** From sending to the last byte, in milliseconds. */
  readonly ms: number;
  readonly retryAfter: number | undefined;
  /** What the server warns of. */
  readonly warnings: readonly string[];
}

/** The key of this tab; it is forgotten with the tab. */
export function storedKey(): string {
  return sessionStorage.getItem(STORED_KEY) ?? '';
}

export function storeKey(key: string): void {
  if (key === '') sessionStorage.removeItem(STORED_KEY);
  else sessionStorage.setItem(STORED_KEY, key);
}

/** The media type of a request's body. */
export function bodyType(path: string): string {
  return /\/_(?:bulk|msearch)\b/.test(path) ? 'application/x-ndjson' : 'application/json';
}

/** Whether a path stays on this server: `//host` and `/\host` name another one, also with the letters that an address is read without. */
function isHere(path: string): boolean {
  return /^\/(?![/\\])/.test(path.replace(/[\t\n\r]/g, ''));
}

/** Sends a request as it is. @throws Refused if the key or the path cannot be one, or nobody answers. */
export async function send(method: string, path: string, body?: string, options: Options = {}): Promise<Reply> {
  if (!isHere(path)) {
    throw new Refused('A path begins with one slash. With two, it would name another server.');
  }
  const key = options.key ?? storedKey();
  if (key === '') throw new Refused('Enter a key first.', 401);
  if (!KEY.test(key)) {
    throw new Refused('A key is one word of letters and digits, as in the file owner.key of the data directory.', 401);
  }
  const headers: Record<string, string> = { Authorization: `ApiKey ${key}` };
  if (body !== undefined) headers['Content-Type'] = bodyType(path);
  const begun = performance.now();
  let response: Response;
  let text: string;
  try {
    // Without credentials a 401 is an answer; with them the browser would ask for a user and a password.
    response = await fetch(path, {
      method,
      headers,
      credentials: 'omit',
      ...(body === undefined ? {} : { body }),
      ...(options.signal === undefined ? {} : { signal: options.signal }),
    });
    text = await response.text();
  } catch (error) {
    if (options.signal?.aborted === true) throw error;
    throw new Refused(`The server cannot be reached (${(error as Error).message}).`);
  }
  const after = response.headers.get('retry-after');
  return {
    status: response.status,
    ok: response.ok,
    text,
    type: response.headers.get('content-type') ?? '',
    ms: performance.now() - begun,
    retryAfter: after === null ? undefined : Number(after),
    warnings: warningTexts(response.headers.get('warning')),
  };
}

/** Sends a request and resolves with the answer's JSON, or its text if it is not JSON. @throws Refused unless it succeeds */
export async function call<T>(method: string, path: string, body?: unknown, options?: Options): Promise<T> {
  const sent = body === undefined || typeof body === 'string' ? body : JSON.stringify(body);
  const reply = await send(method, path, sent, options);
  const answer = parsed(reply.text);
  if (reply.ok) return answer as T;
  if (reply.status === 401) {
    throw new Refused('This key is not accepted. The owner key is in the file owner.key of the data directory.', 401);
  }
  throw new Refused(
    forbidden(sentences(answer)) || reply.text || `status ${reply.status}`,
    reply.status,
    answer,
    reply.retryAfter,
  );
}

/** A refusal in plain words, where it is one for want of a privilege; any other sentence as it is. */
function forbidden(sentence: string): string {
  const [, scope, privilege] = UNAUTHORIZED.exec(sentence) ?? [];
  if (scope === undefined || privilege === undefined) return sentence;
  return `This key does not have the right to do this: it needs the ${scope} privilege “${privilege}”.`;
}

/** The server's own sentence, with the privileges that would do, the narrowest first. */
const UNAUTHORIZED = /^action \[[^\]]+\] is unauthorized .* granted by the (cluster|index) privileges \[([^\],]+)/s;

/** Like `call`, but resolves with `fallback` where the key may not ask or there is nothing. */
export async function optional<T>(fallback: T, method: string, path: string, body?: unknown): Promise<T> {
  try {
    return await call<T>(method, path, body);
  } catch (error) {
    if (error instanceof Refused && [400, 403, 404].includes(error.status)) return fallback;
    throw error;
  }
}

export function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

interface Failure {
  readonly type?: string;
  readonly reason?: string;
  readonly caused_by?: Failure;
  readonly failed_shards?: readonly { readonly reason: Failure }[];
}

/** What is wrong, with its causes, one a line; empty if the answer is no error. */
export function sentences(answer: unknown): string {
  const error = (answer as { error?: Failure | string } | null)?.error;
  if (error === undefined) return '';
  if (typeof error === 'string') return error;
  const lines: string[] = [];
  for (let open: Failure[] = [error]; open.length > 0;) {
    lines.push(...open.map(({ type, reason }) => reason ?? type ?? ''));
    open = open.flatMap(({ caused_by: cause, failed_shards: shards }) =>
      [cause, shards?.[0]?.reason].filter((part) => part !== undefined),
    );
  }
  // That all shards failed says nothing where the cause is known.
  const causes = lines.filter((line) => line !== 'all shards failed');
  return [...new Set(causes.length > 0 ? causes : lines)].join('\n');
}
