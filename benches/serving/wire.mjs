// A client of HTTP/1.1 with little in it, so that what is measured is the server: one socket, one request at a time, answers
// with a length or in chunks.
import { connect } from 'node:net';

const END_OF_HEAD = Buffer.from('\r\n\r\n');

/** One kept-alive connection. */
export class Connection {
  #socket;
  #parts = [];
  #length = 0;
  #waiting;
  #host;

  /** @param {string} url base URL of the server */
  static async open(url) {
    const { hostname, port } = new URL(url);
    const socket = connect({ host: hostname, port: Number(port), noDelay: true });
    await new Promise((resolve, reject) => {
      socket.once('connect', resolve);
      socket.once('error', reject);
    });
    return new Connection(socket, `${hostname}:${port}`);
  }

  constructor(socket, host) {
    this.#socket = socket;
    this.#host = host;
    socket.on('data', (part) => this.#receive(part));
    const fail = (error) => {
      const waiting = this.#waiting;
      this.#waiting = undefined;
      waiting?.reject(error ?? new Error('the server closed the connection'));
    };
    socket.on('error', fail);
    socket.on('close', () => fail());
  }

  /**
   * A request's bytes, made once and sent often.
   *
   * @param {string} method
   * @param {string} path
   * @param {Record<string, string>} headers
   * @param {string | Buffer} body
   */
  encode(method, path, headers, body) {
    const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
    const length = Buffer.byteLength(body);
    const head = `${method} ${path} HTTP/1.1\r\nHost: ${this.#host}\r\n${lines.join('')}Content-Length: ${length}\r\n\r\n`;
    return typeof body === 'string' ? Buffer.from(head + body) : Buffer.concat([Buffer.from(head), body]);
  }

  /**
   * Sends what {@link encode} made.
   *
   * @returns {Promise<{status: number, body: Buffer}>}
   */
  send(bytes) {
    return new Promise((resolve, reject) => {
      if (this.#socket.destroyed) {
        reject(new Error('the server closed the connection before this request'));
        return;
      }
      this.#waiting = { resolve, reject };
      this.#socket.write(bytes);
    });
  }

  close() {
    this.#socket.destroy();
  }

  #receive(part) {
    this.#parts.push(part);
    this.#length += part.length;
    const all = this.#parts.length === 1 ? part : Buffer.concat(this.#parts, this.#length);
    this.#parts = [all];
    const answer = parse(all);
    if (answer === undefined) return;
    this.#parts = [];
    this.#length = 0;
    const waiting = this.#waiting;
    this.#waiting = undefined;
    waiting?.resolve(answer);
  }
}

/** A whole answer, or undefined while some of it is missing. */
function parse(bytes) {
  const end = bytes.indexOf(END_OF_HEAD);
  if (end < 0) return undefined;
  const head = bytes.latin1Slice(0, end);
  const status = Number(head.slice(9, 12));
  const from = end + 4;
  const length = /\r\ncontent-length: *(\d+)/i.exec(head)?.[1];
  if (length !== undefined) {
    const to = from + Number(length);
    return bytes.length < to ? undefined : { status, body: bytes.subarray(from, to) };
  }
  if (/\r\ntransfer-encoding: *chunked/i.test(head)) {
    const body = unchunk(bytes, from);
    return body === undefined ? undefined : { status, body };
  }
  return { status, body: Buffer.alloc(0) };
}

function unchunk(bytes, start) {
  const parts = [];
  for (let at = start; ;) {
    const end = bytes.indexOf('\r\n', at, 'latin1');
    if (end < 0) return undefined;
    const length = Number.parseInt(bytes.latin1Slice(at, end), 16);
    const next = end + 2 + length + 2;
    if (bytes.length < next) return undefined;
    if (length === 0) return Buffer.concat(parts);
    parts.push(bytes.subarray(end + 2, end + 2 + length));
    at = next;
  }
}
