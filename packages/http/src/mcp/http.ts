import { setImmediate } from 'node:timers/promises';

import {
  WebStandardStreamableHTTPServerTransport,
  createMcpHandler,
  isLegacyRequest,
} from '@modelcontextprotocol/server';
import { sizeOfJson } from '@sparrow-search/endpoints';
import { EngineError, SparrowError } from '@sparrow-search/engine';

import type { Dispatch, Exchange } from '../exchange/exchange.js';
import { FairQueue, type Sender } from '../exchange/fair-queue.js';
import type { Answer } from '../exchange/respond.js';
import { LocalExchange } from '../in-process/local-exchange.js';
import { asksForTools, parseMessage } from './bounds.js';
import { type AskOptions, type RestInterface, ToolError } from './rest-interface.js';
import { mcpServer } from './server.js';

/** Longest answer that a tool reads, and most values in one: it is parsed on the event loop. */
const MOST_BYTES = 8 * 1024 * 1024;
const MOST_VALUES = 100_000;

/** Headers of the protocol. */
const HEADERS = ['mcp-protocol-version', 'mcp-method', 'mcp-name', 'mcp-session-id'];

/**
 * Messages whose turn has not come. Each holds the event loop for some milliseconds, and other requests are answered in between. Many of a
 * caller may wait: that takes little.
 */
const queue = new FairQueue({
  what: 'messages to /mcp',
  advice: 'send it later',
  ofCaller: 100,
  together: 2000,
});

/** Answers one message of the Model Context Protocol. Nothing is kept from one to the next. */
export async function answerMessage(
  exchange: Exchange,
  body: Uint8Array | undefined,
  sender: Sender,
  dispatch: Dispatch,
  isWriting: boolean,
): Promise<Answer> {
  const gone = new AbortController();
  const end = exchange.onGone(() => {
    gone.abort();
  });
  try {
    const rest = new SameServer(dispatch, exchange, gone.signal);
    const { answering } = await queue.run(sender, async () => {
      const message = parseMessage(body);
      const begun = answerOf(exchange, message, body, gone.signal, rest, isWriting);
      begun.catch(() => undefined);
      // The next message is begun in another turn of the event loop, while this one waits for what its tool asks.
      await setImmediate();
      return { answering: begun };
    });
    return await answering;
  } finally {
    end();
  }
}

/** A request as the library for the protocol takes it. The address says nothing: every name of this server was accepted before. */
function requestOf(exchange: Exchange, body: Uint8Array | undefined, signal: AbortSignal): Request {
  // How the body is written was looked at before, and everything is answered in JSON, which a client takes that says nothing too.
  const headers = new Headers({
    accept: 'application/json, text/event-stream',
    'content-type': 'application/json',
  });
  for (const name of HEADERS) {
    const value = exchange.header(name);
    if (value !== undefined) headers.set(name, value);
  }
  const bytes = body === undefined ? null : Buffer.from(body.buffer, body.byteOffset, body.byteLength);
  return new Request('http://localhost/mcp', { method: 'POST', headers, body: bytes, signal });
}

/** An answer that lists the tools, but for the id of its message. */
interface List {
  readonly answer: Answer;
  readonly before: string;
  readonly after: string;
}

/** Such answers by all else that they depend on, the latest last. */
const lists = new Map<string, List>();

/** Most of them that are kept, and most characters of what each depends on. Clients of one kind all send the same. */
const MOST_LISTS = 32;
const MOST_KEY = 1000;

/** Stands for the id of a message. */
const SOME_ID = '\u0001id\u0001';

/** Answers one message, or several; the list of the tools is made once. */
async function answerOf(
  exchange: Exchange,
  message: unknown,
  body: Uint8Array | undefined,
  signal: AbortSignal,
  rest: RestInterface,
  isWriting: boolean,
): Promise<Answer> {
  const respondTo = async (sent: unknown): Promise<Answer> =>
    answerFrom(await respond(requestOf(exchange, body, signal), sent, rest, isWriting));
  const id = asksForTools(message) ? message['id'] : undefined;
  if (!asksForTools(message) || (typeof id !== 'string' && typeof id !== 'number')) return respondTo(message);
  const headers = HEADERS.map((name) => exchange.header(name) ?? null);
  const key = JSON.stringify([isWriting, headers, { ...message, id: null }]);
  let list = lists.get(key);
  if (list === undefined) {
    const answer = await respondTo({ ...message, id: SOME_ID });
    const [before, after, ...others] = Buffer.from(answer.body ?? '')
      .toString()
      .split(JSON.stringify(SOME_ID));
    // Errors may say the id in another place.
    if (before === undefined || after === undefined || others.length > 0) return respondTo(message);
    list = { answer, before, after };
    if (list.answer.status === 200 && key.length <= MOST_KEY) keepList(key, list);
  }
  return { ...list.answer, body: list.before + JSON.stringify(id) + list.after };
}

function keepList(key: string, list: List): void {
  lists.set(key, list);
  const [oldest] = lists.keys();
  if (lists.size > MOST_LISTS && oldest !== undefined) lists.delete(oldest);
}

async function answerFrom(response: Response): Promise<Answer> {
  const contentType = response.headers.get('content-type');
  return {
    status: response.status,
    body: new Uint8Array(await response.arrayBuffer()),
    type: 'text',
    ...(contentType === null ? {} : { contentType }),
  };
}

async function respond(request: Request, message: unknown, rest: RestInterface, isWriting: boolean): Promise<Response> {
  const options = message === undefined ? {} : { parsedBody: message };
  if (!(await isLegacyRequest(request.clone(), message))) {
    // A stream of changes would never end, and the tools do not change.
    const handler = createMcpHandler(() => mcpServer(rest, isWriting), { legacy: 'reject', maxSubscriptions: 0 });
    return handler.fetch(request, options);
  }
  // Revisions of the protocol up to 2025, answered in JSON rather than as a stream of one event.
  const server = mcpServer(rest, isWriting);
  const transport = new WebStandardStreamableHTTPServerTransport({ enableJsonResponse: true });
  try {
    await server.connect(transport);
    return await transport.handleRequest(request, options);
  } finally {
    await server.close();
  }
}

/**
 * The REST interface of the server that a message came to, for the key that came with it: each request of a tool goes through all that a
 * request over HTTP goes through, from the check of the key to the audit log.
 */
class SameServer implements RestInterface {
  readonly #dispatch: Dispatch;
  readonly #exchange: Exchange;
  readonly #gone: AbortSignal;

  constructor(dispatch: Dispatch, exchange: Exchange, gone: AbortSignal) {
    this.#dispatch = dispatch;
    this.#exchange = exchange;
    this.#gone = gone;
  }

  async request<T>(method: string, path: string, { query = {}, body, signal }: AskOptions = {}): Promise<T> {
    const ended = signal === undefined ? this.#gone : AbortSignal.any([signal, this.#gone]);
    ended.throwIfAborted();
    const headers: Record<string, string> = {};
    for (const name of ['authorization', 'x-opaque-id', 'traceparent']) {
      const value = this.#exchange.header(name);
      if (value !== undefined) headers[name] = value;
    }
    // Others wait while the event loop does this.
    const exchange = new LocalExchange(
      { method, path, query, body, headers, signal: ended },
      this.#exchange.from,
      true,
    );
    const finished = await exchange.answer(this.#dispatch);
    ended.throwIfAborted();
    const bytes = Buffer.from(finished.body ?? '');
    if (finished.status >= 400) throw SparrowError.of(new EngineError(finished.status, bytes));
    if (bytes.length > MOST_BYTES) {
      throw new ToolError(
        `The answer has ${String(bytes.length)} bytes, which is too much: ask for fewer hits or fields.`,
      );
    }
    const { values } = sizeOfJson(bytes);
    if (values > MOST_VALUES) {
      throw new ToolError(
        `The answer has ${String(values)} values, which is too much: ask for fewer hits, or for some of the fields by name.`,
      );
    }
    return JSON.parse(bytes.toString()) as T;
  }
}
