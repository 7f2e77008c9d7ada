import type { RequestListener, ServerOptions } from 'node:http';
import { type Server, createServer } from 'node:https';
import type { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';

import type { Config } from '../config.js';
import type { Logger } from '../log.js';
import { readMaterial, versionOf } from './material.js';
import { described, reloadOnChange, warnOfEnd } from './reload.js';

/** How long a client may take to agree on a key. */
const HANDSHAKE_MS = 10_000;

/** First byte of a TLS record with a handshake. */
const HANDSHAKE = 22;

/** A server that speaks TLS, and how to end looking for new certificates. */
export interface TlsListener {
  readonly server: Server;
  readonly stop: () => void;
}

/**
 * Makes a server that speaks TLS.
 *
 * @throws {ConfigError} naming the file that is missing or does not fit
 */
export async function createTlsServer(
  config: Config,
  options: ServerOptions,
  listener: RequestListener,
  log: Logger,
): Promise<TlsListener> {
  const version = await versionOf(config);
  const material = await readMaterial(config);
  const server = createServer(
    {
      ...options,
      ...material.options,
      ALPNProtocols: ['http/1.1'],
      handshakeTimeout: HANDSHAKE_MS,
      ...(config.tlsClientCa === undefined
        ? {}
        : { requestCert: true, rejectUnauthorized: config.tlsClientAuth === 'required' }),
    },
    config.tlsClientCa === undefined ? listener : onlyValidCertificates(listener),
  );
  server.on('tlsClientError', (error: NodeJS.ErrnoException, socket: TLSSocket) => {
    log.debug('a TLS connection was not made', { code: error.code ?? error.message });
    socket.destroy();
  });
  log.info('TLS certificate in force', described(material));
  warnOfEnd(material, log);
  lookAtFirstByte(server);
  return { server, stop: reloadOnChange(server, config, version, material, log) };
}

/** A certificate need not be there where it is optional, but one that is there must be a good one. */
function onlyValidCertificates(listener: RequestListener): RequestListener {
  return (incoming, outgoing) => {
    const { socket } = incoming;
    // Where it does not hold, nothing spoke TLS, and there is no certificate to look at.
    const given = socket instanceof TLSSocket && Object.keys(socket.getPeerCertificate()).length > 0;
    if (!given || socket.authorized) {
      listener(incoming, outgoing);
      return;
    }
    const reason = `the client’s certificate is not accepted [${String(socket.authorizationError)}]`;
    const cause = { type: 'security_exception', reason };
    const body = JSON.stringify({ error: { root_cause: [cause], ...cause }, status: 401 });
    outgoing.writeHead(401, {
      'Content-Type': 'application/json',
      'Content-Length': Buffer.byteLength(body),
      Connection: 'close',
    });
    outgoing.end(body);
  };
}

/** Puts a look at the first byte of each connection before the handshake, for clients that do not speak TLS. */
function lookAtFirstByte(server: Server): void {
  const handshakes = server.listeners('connection') as ((socket: Socket) => void)[];
  server.removeAllListeners('connection');
  server.on('connection', (socket: Socket) => {
    const tooLate = setTimeout(() => socket.destroy(), HANDSHAKE_MS);
    const onError = (): void => {
      socket.destroy();
    };
    socket.once('error', onError);
    socket.once('close', () => {
      clearTimeout(tooLate);
    });
    const look = (): void => {
      const first = socket.read() as Buffer | null;
      if (first === null) {
        if (!socket.readableEnded && !socket.destroyed) socket.once('readable', look);
        return;
      }
      clearTimeout(tooLate);
      if (first[0] !== HANDSHAKE) {
        refusePlainHttp(socket);
        return;
      }
      socket.off('error', onError);
      socket.unshift(first);
      for (const handshake of handshakes) handshake.call(server, socket);
    };
    socket.once('readable', look);
  });
}

/** Answers a client that does not speak TLS, in plain HTTP, and ends the connection. */
function refusePlainHttp(socket: Socket): void {
  const cause = { type: 'bad_request_exception', reason: 'this port speaks HTTPS only: use https:// in the address' };
  const body = JSON.stringify({ error: { root_cause: [cause], ...cause }, status: 400 });
  socket.end(
    `HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\nContent-Length: ${String(Buffer.byteLength(body))}\r\n` +
      `Connection: close\r\n\r\n${body}`,
  );
  // What else it sends is not wanted, but must be read for it to see the answer.
  socket.resume();
  setTimeout(() => socket.destroy(), 1000).unref();
}
