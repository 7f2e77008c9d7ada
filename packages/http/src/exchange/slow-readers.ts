import type { ServerResponse } from 'node:http';

import { onClose } from './gone.js';
import type { InFlight, Reader } from './in-flight.js';

/** How long any answer may take to be read, in milliseconds. */
const PATIENCE_MS = 30_000;

/** Bytes a second that a client must read on average beyond that. */
const MIN_RATE = 32 * 1024;

/**
 * Milliseconds that an answer may take to be read, and bytes a second beyond that, while other requests are refused for want of the memory
 * that it takes.
 */
const HURRIED_MS = 5_000;
const HURRIED_RATE = 1024 * 1024;

/** How often an answer that is not read is looked at. */
const EVERY_MS = 1000;

/**
 * Ends the connection of a client that does not read its answer: it would stay in memory for as long as the client likes. What
 * was not read yet counts as in flight, unless other answers have the same bytes. Called when all of the answer was handed to the
 * connection.
 */
export function boundReading(outgoing: ServerResponse, inFlight: InFlight, reader: Reader, isShared = false): void {
  const unread = outgoing.writableLength;
  if (unread > 0) watch(outgoing, unread, inFlight, reader, isShared);
}

function watch(outgoing: ServerResponse, unread: number, inFlight: InFlight, reader: Reader, isShared: boolean): void {
  const begun = performance.now();
  const cut = (): void => {
    outgoing.destroy();
  };
  const due = begun + HURRIED_MS + (unread / HURRIED_RATE) * 1000;
  // To end it would give back no memory, and so it keeps nobody from any.
  const over = isShared ? (): void => undefined : inFlight.unread(unread, reader, due, cut);
  const patience = PATIENCE_MS + (unread / MIN_RATE) * 1000;
  const timer = setInterval(() => {
    if (performance.now() - begun <= patience) return;
    clearInterval(timer);
    inFlight.tooSlow(unread, reader);
    cut();
  }, EVERY_MS).unref();
  onClose(outgoing, () => {
    clearInterval(timer);
    over();
  });
}
