import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/**
 * Calls `callback` once an answer is finished or nobody waits for it any longer, also if that was before.
 *
 * @returns takes the callback back
 */
export function onClose(outgoing: ServerResponse, callback: () => void): () => void {
  if (outgoing.closed || outgoing.destroyed) {
    let wanted = true;
    queueMicrotask(() => {
      if (wanted) callback();
    });
    return () => (wanted = false);
  }
  outgoing.once('close', callback);
  return () => outgoing.off('close', callback);
}

/**
 * Closes the answers of a connection that is gone. Node closes the one that was being sent; those behind it, to requests that
 * came before it was finished, would never hear of it.
 */
export function closeQueued(socket: Socket, answers: Iterable<ServerResponse>): void {
  for (const outgoing of answers) {
    // The one that is being sent has the connection.
    if (outgoing.socket === socket || outgoing.closed) continue;
    outgoing.destroy();
    outgoing.emit('close');
  }
}
