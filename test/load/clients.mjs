// Clients that ask one request after another on a connection each, as cheaply as Node can: a thousand of them share one thread
// with nothing else.
import { connect } from 'node:net';

const HEAD_END = Buffer.from('\r\n\r\n');

/**
 * One client: asks `next()` for a request, sends it, waits for the whole answer, and so on until `isOver()`. Told to come again
 * later, it waits for as long as it was told if it is patient.
 *
 * @param {{hostname: string, port: number, apiKey: string}} server
 * @param {() => {method: string, path: string, body: string, type: string}} next
 * @param {{isOver: () => boolean, patient: boolean, random: () => number, heard: (status: number, ms: number) => void}} options
 * @returns a promise of how it ended: `done`, or `cut` when the server closed the connection
 */
export function runClient({ hostname, port, apiKey }, next, { isOver, patient, random, heard }) {
  return new Promise((resolve) => {
    const socket = connect({ host: hostname, port, noDelay: true });
    let held = Buffer.alloc(0);
    let begun = 0;
    let ended = false;
    const end = (how) => {
      if (ended) return;
      ended = true;
      socket.destroy();
      resolve(how);
    };
    const ask = () => {
      if (isOver()) {
        end('done');
        return;
      }
      const { method, path, body, type } = next();
      begun = performance.now();
      socket.write(
        `${method} ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: ApiKey ${apiKey}\r\nContent-Type: ${type}\r\n` +
          `Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
      );
    };
    socket.on('connect', ask);
    socket.on('data', (chunk) => {
      held = held.length === 0 ? chunk : Buffer.concat([held, chunk]);
      const head = held.indexOf(HEAD_END);
      if (head < 0) return;
      const text = held.toString('latin1', 0, head);
      const length = Number(/content-length: (\d+)/i.exec(text)?.[1] ?? 0);
      if (held.length < head + HEAD_END.length + length) return;
      held = Buffer.alloc(0);
      const status = Number(text.slice(9, 12));
      heard(status, performance.now() - begun);
      const later = Number(/retry-after: (\d+)/i.exec(text)?.[1] ?? 0);
      if (status === 429 && patient && later > 0) setTimeout(ask, later * 1000 * (0.5 + random()));
      else ask();
    });
    socket.on('error', () => end('cut'));
    socket.on('close', () => end('cut'));
  });
}
