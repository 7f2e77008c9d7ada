import { IncomingMessage, type RequestListener, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

import { Turns } from '@sparrow-search/engine';

import { isStranger } from './strangers.js';

/**
 * Requests of all connections together that may wait behind earlier ones of their connections. Each takes two to three kilobytes, and a
 * connection has as many as come with one piece of 64 KiB.
 */
const MOST_WAITING = 50_000;

/** The same of one connection on which nobody has shown a key: no client that has one asks so much before it has shown it. */
const MOST_OF_STRANGER = 16;

/**
 * A request as Node parses it. Of a connection that was destroyed Node would go on to parse all that it has read of it, and later tell each
 * request that it was aborted, which takes the longest of all. As what comes after a request that changes the protocol is no request, Node
 * stops where one says of itself that it does.
 */
export class ParsedRequest extends IncomingMessage {
  // Node sets it before there could be a private field.
  declare private changesProtocol: boolean;

  get upgrade(): boolean {
    return this.changesProtocol || this.socket.destroyed;
  }

  set upgrade(changesProtocol: boolean) {
    this.changesProtocol = changesProtocol;
  }
}

interface Pipeline {
  readonly waiting: [IncomingMessage, ServerResponse][];
  /** Stops reading again, as Node begins to with every answer that is finished. */
  readonly hold: () => void;
}

/**
 * Requests that were sent before the answer to an earlier one of the same connection came. Node hands over all that are in a piece of 64
 * KiB at once, which can be thousands: answered one after the other, they keep everybody else waiting. In each turn of the event loop one
 * request of a connection is begun, and nothing more is read of a connection as long as requests of it wait.
 */
export class Pipelined {
  readonly #pipelines = new Map<Socket, Pipeline>();
  #count = 0;
  #isScheduled = false;

  /** @param most requests that may wait; a connection that brings one more is ended */
  constructor(private readonly most = MOST_WAITING) {}

  /** Requests that wait behind earlier ones. */
  get waiting(): number {
    return this.#count;
  }

  /** A listener in front of the one that answers requests. */
  before(answer: RequestListener): RequestListener {
    return (incoming, outgoing) => {
      // Node gives an answer the connection as soon as those before it are sent. Most clients wait for that: they pay nothing.
      if (outgoing.socket !== null) answer(incoming, outgoing);
      else this.#wait(answer, incoming, outgoing);
    };
  }

  #wait(answer: RequestListener, incoming: IncomingMessage, outgoing: ServerResponse): void {
    const { socket } = incoming;
    // Its last answer is sent, or being sent.
    if (!socket.writable) return;
    const found = this.#pipelines.get(socket);
    const ofStranger = isStranger(socket) ? (found?.waiting.length ?? 0) : 0;
    if (this.#count >= this.most || ofStranger >= MOST_OF_STRANGER) {
      socket.destroy();
      return;
    }
    this.#count += 1;
    if (found !== undefined) {
      found.waiting.push([incoming, outgoing]);
      return;
    }
    const hold = (): void => {
      socket.pause();
    };
    this.#pipelines.set(socket, { waiting: [[incoming, outgoing]], hold });
    socket.pause();
    socket.on('resume', hold);
    if (!this.#isScheduled) this.#schedule(answer);
  }

  #schedule(answer: RequestListener): void {
    this.#isScheduled = true;
    setImmediate(() => {
      this.#isScheduled = false;
      this.#round(answer);
      if (this.#pipelines.size > 0) this.#schedule(answer);
    });
  }

  /** Begins one request of each connection, or as many as there is time for: the next turn begins with the connections that are left. */
  #round(answer: RequestListener): void {
    const turn = new Turns();
    for (const [socket, pipeline] of [...this.#pipelines]) {
      const next = socket.writable ? pipeline.waiting.shift() : undefined;
      if (next !== undefined) this.#count -= 1;
      this.#pipelines.delete(socket);
      if (next !== undefined && pipeline.waiting.length > 0) this.#pipelines.set(socket, pipeline);
      else this.#end(socket, pipeline);
      if (next !== undefined) answer(...next);
      if (turn.isOver) return;
    }
  }

  /** Reads on; of a connection that has ended, nobody waits for what is left. */
  #end(socket: Socket, { waiting, hold }: Pipeline): void {
    this.#count -= waiting.length;
    socket.off('resume', hold);
    socket.resume();
  }
}
