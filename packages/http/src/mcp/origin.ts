import { isIP } from 'node:net';

import { HttpError } from '@sparrow-search/endpoints';

import type { Exchange } from '../exchange/exchange.js';

/**
 * Refuses requests that the page of another site makes. A browser can be led to believe that this server belongs to such a site, by a name
 * that first leads there and then here (DNS rebinding): `Host` then names the site as well, so that it says nothing without TLS, for which
 * the site has no certificate of a server that is not its own. Programs send no `Origin`.
 *
 * @throws {HttpError} 403
 */
export function checkOrigin(exchange: Pick<Exchange, 'header'>): void {
  const origin = exchange.header('origin');
  if (origin === undefined || isLoopback(origin) || origin === `https://${exchange.header('host') ?? ''}`) return;
  throw new HttpError('forbidden', `requests to [/mcp] from the page [${origin.slice(0, 200)}] are refused`);
}

function isLoopback(origin: string): boolean {
  if (!URL.canParse(origin)) return false;
  const { hostname } = new URL(origin);
  return hostname === 'localhost' || hostname === '[::1]' || (isIP(hostname) === 4 && hostname.startsWith('127.'));
}
