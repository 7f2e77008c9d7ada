import type { Route } from '@sparrow-search/endpoints';

import type { Hold } from './in-flight.js';

/** One request as the application sees it, whichever way it came in: over Node's server, as one of Fetch's, or from this process. */
export interface Exchange {
  readonly method: string;
  /** Path and query string as they were sent. */
  readonly uri: string;
  /** The path alone; escapes in it are resolved, and then its last slash is gone too. */
  readonly path: string;
  /** The path by which Hono finds its route; see `routedPath` in `uri.ts`. */
  readonly routed: string;
  /** The address that the connection came from; empty where there is no connection. */
  readonly from: string;
  /** Whether others have just asked too, or it is not known: they would wait for what holds up the event loop. */
  readonly concurrent: boolean;
  /**
   * Whether the connection is to end with a refusal for want of a key: nobody has shown one on it, and no part of the request is still on
   * its way, which a client would go on sending instead of reading the refusal.
   */
  readonly endsWhenRefused?: boolean;
  header(name: string): string | undefined;
  /** Names and values in turn of the headers as they came; empty where only Fetch's are known, which joins them. */
  readonly headerLines: readonly string[];
  /** Is told the id of the right key that it came with, or of the one that all keys come from which made that. */
  recognize?(key: string): void;
  /** Is told its route, where what it stands for says what kind of body it has. */
  settle?(route: Route | undefined): void;
  /**
   * The bytes of the body as they came, empty without a body.
   *
   * @param hold takes room for them
   * @throws {HttpError} 413 when there are more than `limit`, 429 when there is no room
   */
  readBody(limit: number, hold: Hold): Promise<Uint8Array>;
  /** Calls back once if the connection closes before the answer is sent; the function that comes back ends that. */
  onGone(callback: () => void): () => void;
  /** Sends the answer; what comes back is for Hono. */
  send(finished: Finished): Response;
}

/** An answer with all its headers, ready to be sent. */
export interface Finished {
  readonly status: number;
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly body: Uint8Array | string | null;
  /** Whether its bytes are those of other answers too, so that they take no memory of their own. */
  readonly isShared?: boolean;
}

/** Has a request answered; the exchange is given the answer. */
export type Dispatch = (exchange: Exchange) => Response | Promise<Response>;

/** What Hono is given for an answer that was sent already. */
export const SENT = new Response(null);
