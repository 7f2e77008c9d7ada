import { getPathNoStrict } from 'hono/utils/url';
import { HttpError } from '@sparrow-search/endpoints';

const NONE: Readonly<Record<string, string>> = Object.freeze({});

/**
 * The query string of a URI as parameters. The last of several with one name counts.
 *
 * @throws {HttpError} 400 for an escape that is malformed, or that is not UTF-8
 */
export function parametersOf(uri: string): Readonly<Record<string, string>> {
  const mark = uri.indexOf('?');
  if (mark < 0) return NONE;
  const text = uri.slice(mark + 1);
  if (text.includes('%')) {
    for (const part of text.split(/[&=]/)) {
      const problem = badEscape(part);
      if (problem !== undefined) {
        throw new HttpError('bad_parameter', `java.lang.IllegalArgumentException: ${problem}`, {
          causedBy: { type: 'illegal_argument_exception', reason: problem },
        });
      }
    }
  }
  return Object.fromEntries(new URLSearchParams(text));
}

/** @throws {HttpError} 400 for a path with an escape that is malformed, or that is not UTF-8 */
export function checkPath(path: string): void {
  if (!path.includes('%')) return;
  for (const segment of path.split('/')) {
    const problem = badEscape(segment);
    if (problem !== undefined) throw new HttpError('illegal_argument', problem);
  }
}

/** What is wrong with the escapes of a piece of a URI, in Elasticsearch's words; undefined if nothing is. */
function badEscape(text: string): string | undefined {
  for (let at = text.indexOf('%'); at >= 0; at = text.indexOf('%', at + 3)) {
    if (at + 1 >= text.length) return `unterminated escape sequence at end of string: ${text}`;
    if (at + 2 >= text.length) return `partial escape sequence at end of string: ${text}`;
    const escape = text.slice(at, at + 3);
    if (!/^%[\da-f]{2}$/i.test(escape))
      return `invalid escape sequence \`${escape}' at index ${String(at)} of: ${text}`;
  }
  try {
    decodeURIComponent(text);
    return undefined;
  } catch {
    // Replacing what is malformed would make one name of several.
    return `escape sequences that are not UTF-8 in: ${text}`;
  }
}

/** A segment that stands for another one, escaped or not. */
const DOTS = /(?:^|[/\\])(?:\.|%2e){1,2}(?:[/\\]|$)/i;

/** What is not read as it is in a path. */
const ESCAPED = /[%#]/;

/** A path that no route has. */
const NOWHERE = '//';

/** Names of hosts as nearly all of them are; an empty one is that of a client of HTTP/1.0. */
const USUAL_HOST = /^(?:[\w.-]+(?::\d{1,4})?)?$/;

/** What the target of a request asks for. */
export interface Target {
  /** Its path, with the escapes of what has no other meaning resolved. */
  readonly path: string;
  /** The path by which Hono finds its route. */
  readonly routed: string;
}

/** The target of a request over HTTP, undefined where no address can be made of it and the `Host` header. */
export function targetOf(uri: string, host = ''): Target | undefined {
  // The server as a whole, which no route is about.
  if (uri.startsWith('*')) return { path: uri, routed: NOWHERE };
  const mark = uri.indexOf('?');
  const path = mark < 0 ? uri : uri.slice(0, mark);
  // Clients and proxies resolve them: a request for the document [..] would be one for its index. No route has such a segment.
  if (DOTS.test(path)) return { path, routed: NOWHERE };
  if (path.includes('\\')) return undefined;
  if (path.startsWith('/')) {
    if (!USUAL_HOST.test(host) && !isHost(host)) return undefined;
    if (!ESCAPED.test(path)) return { path, routed: withoutSlash(path) };
    const routed = resolved(path);
    return { path: routed, routed };
  }
  // The whole address, as it is sent to proxies.
  if (!/^https?:\/\//.test(uri) || !URL.canParse(uri)) return undefined;
  const routed = pathOf(new URL(uri).href);
  return { path: routed, routed };
}

/** The path by which Hono finds a route: without the slash at its end, and with the escapes of what has no other meaning resolved. */
export function routedPath(path: string): string {
  if (DOTS.test(path)) return NOWHERE;
  const rooted = path.startsWith('/') ? path : `/${path}`;
  return ESCAPED.test(path) ? resolved(rooted) : withoutSlash(rooted);
}

function withoutSlash(path: string): string {
  return path.length > 1 && path.endsWith('/') ? path.slice(0, -1) : path;
}

function resolved(path: string): string {
  return pathOf(`http://_${path}`);
}

/** The path of an address as Hono reads it of a request, of which it looks at nothing else. */
function pathOf(url: string): string {
  return getPathNoStrict({ url } as unknown as Request);
}

function isHost(host: string): boolean {
  return /^[^\s/\\?#@\x7f-\uffff]+$/.test(host) && URL.canParse(`http://${host}`);
}
