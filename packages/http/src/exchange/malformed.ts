import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';

/**
 * Answers what is not HTTP, or too long or too slow to be read as that, in the shape of every other error; the connection
 * ends with it, as nothing that follows can be told apart.
 */
export function malformedRequests(maxHeaderBytes: number): (error: Error, socket: Duplex) => void {
  return (error, socket) => {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ECONNRESET' || !socket.writable) {
      socket.destroy();
      return;
    }
    const [status, type, reason] =
      code === 'HPE_HEADER_OVERFLOW'
        ? (['400 Bad Request', 'too_long_http_header_exception', headerSentence(maxHeaderBytes)] as const)
        : code === 'ERR_HTTP_REQUEST_TIMEOUT'
          ? (['408 Request Timeout', 'status_exception', 'the request did not arrive in time'] as const)
          : (['400 Bad Request', 'bad_request_exception', 'the request is not valid HTTP/1.1'] as const);
    const body = errorBody(Number(status.slice(0, 3)), type, reason);
    socket.end(
      `HTTP/1.1 ${status}\r\nContent-Type: application/json\r\nContent-Length: ${String(Buffer.byteLength(body))}\r\n` +
        `Connection: close\r\n\r\n${body}`,
    );
  };
}

/** Answers an `Expect` header that asks for anything but `100-continue`. The body that may follow is not read. */
export function refuseExpectation({ headers }: IncomingMessage, outgoing: ServerResponse): void {
  const { expect = '' } = headers;
  const body = errorBody(417, 'illegal_argument_exception', `Expect header [${expect}] is not supported`);
  outgoing.writeHead(417, {
    'Content-Type': 'application/json',
    'Content-Length': Buffer.byteLength(body),
    Connection: 'close',
  });
  outgoing.end(body);
}

/** Answers a request of whose target and `Host` header no address can be made. */
export function refuseAddress(outgoing: ServerResponse): void {
  const reason = 'the target and the Host header of the request are not a valid address';
  const body = errorBody(400, 'bad_request_exception', reason);
  outgoing.writeHead(400, { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(body) });
  outgoing.end(body);
}

function errorBody(status: number, type: string, reason: string): string {
  const cause = { type, reason };
  return JSON.stringify({ error: { root_cause: [cause], ...cause }, status });
}

function headerSentence(maxHeaderBytes: number): string {
  return `HTTP header is larger than ${String(maxHeaderBytes)} bytes.`;
}
