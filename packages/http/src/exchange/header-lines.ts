import { HttpError } from '@sparrow-search/endpoints';

import type { Exchange } from './exchange.js';

/** Most headers of a request. Browsers and clients send a few dozen, proxies add a few more. */
const MOST = 1000;

/** Headers of which one line counts. Node takes the first of several, others take the last. */
const SINGLE: ReadonlyMap<string, string> = new Map([
  ['authorization', 'Authorization'],
  ['content-type', 'Content-Type'],
]);

/**
 * Refuses requests whose headers could be read in several ways: a proxy before the server might have read them in another.
 *
 * @throws {HttpError} 400
 */
export function checkHeaders(exchange: Pick<Exchange, 'headerLines' | 'header'>): void {
  const { headerLines } = exchange;
  if (headerLines.length > 2 * MOST) {
    throw new HttpError('illegal_argument', `the request has more than [${String(MOST)}] headers; send fewer`);
  }
  const found = new Set<string>();
  // Names and values in turn.
  for (let at = 0; at < headerLines.length; at += 2) {
    const name = headerLines[at] ?? '';
    // Most names are told from these by their length, and need no copy in small letters.
    if (name.length !== 13 && name.length !== 12) continue;
    const single = SINGLE.get(name.toLowerCase());
    if (single === undefined) continue;
    if (found.has(single)) throw several(single);
    found.add(single);
  }
  // Fetch joins the lines. No key has a comma in it.
  if (exchange.header('authorization')?.includes(',') === true) throw several('Authorization');
}

function several(name: string): HttpError {
  return new HttpError('illegal_argument', `multiple values for single-valued header [${name}]; send it once`);
}
