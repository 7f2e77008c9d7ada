import { HttpError, RoutingError } from '../errors.js';

/** Versions of the interface that a vendored media type may ask for. */
const VERSIONS = ['8', '7'];

const PLAIN = new Set(['application/json', 'application/x-ndjson']);
const VENDORED = new Set(['application/vnd.elasticsearch+json', 'application/vnd.elasticsearch+x-ndjson']);

export const JSON_TYPE = 'application/json';
export const TEXT_TYPE = 'text/plain; charset=UTF-8';

/** How a request wants its answer. */
export interface Negotiated {
  /** Media type of a JSON answer. */
  readonly json: string;
  /** Whether the `Accept` header named JSON, which turns the text tables of `_cat` into JSON. */
  readonly asksForJson: boolean;
}

interface MediaType {
  readonly name: string;
  readonly version: string | undefined;
}

/** Most header values that are remembered as read: clients send the same few with every request. */
const REMEMBERED = 200;

const known = new Map<string, Negotiated>();
const readable = new Set<string>();

/** @throws {RoutingError} 406 for a body in a format that is not read, {@link HttpError} 400 for an unknown version */
export function checkContentType(header: string | undefined): void {
  if (header !== undefined && readable.has(header)) return;
  const type = parse(header ?? '');
  if (!PLAIN.has(type.name) && !VENDORED.has(type.name)) {
    throw new RoutingError(406, `Content-Type header [${header ?? ''}] is not supported`);
  }
  checkVersion('Content-Type', header ?? '', type);
  if (header !== undefined && readable.size < REMEMBERED) readable.add(header);
}

/**
 * The media type to answer with: what `Accept` names first of what there is, else the kind of the request's own body. An
 * `Accept` that names nothing we have is answered in JSON, as the original does.
 */
export function negotiate(accept: string | undefined, contentType: string | undefined): Negotiated {
  const key = `${accept ?? ''}\n${contentType ?? ''}`;
  const remembered = known.get(key);
  if (remembered !== undefined) return remembered;
  const negotiated = read(accept, contentType);
  if (known.size < REMEMBERED) known.set(key, negotiated);
  return negotiated;
}

function read(accept: string | undefined, contentType: string | undefined): Negotiated {
  const accepted = (accept ?? '').split(',').map(parse);
  const type = accepted.find(({ name }) => PLAIN.has(name) || VENDORED.has(name));
  if (type === undefined) {
    const sent = parse(contentType ?? '');
    return { json: VENDORED.has(sent.name) ? vendored(sent) : JSON_TYPE, asksForJson: false };
  }
  checkVersion('Accept', accept ?? '', type);
  return {
    json: VENDORED.has(type.name) ? vendored(type) : JSON_TYPE,
    // The official clients accept text beside JSON everywhere, and mean text where text is what there is.
    asksForJson: !accepted.some(({ name }) => name === 'text/plain'),
  };
}

function vendored(type: MediaType): string {
  const version = type.version === undefined ? '' : `;compatible-with=${type.version}`;
  return `application/vnd.elasticsearch+json${version}`;
}

function checkVersion(header: string, value: string, { version }: MediaType): void {
  if (version === undefined || VERSIONS.includes(version)) return;
  throw new HttpError('media_type_version', 'Invalid media-type value on headers [Content-Type, Accept]', {
    causedBy: {
      type: 'status_exception',
      reason: `${header} version must be either version 8 or 7, but found ${version}. ${header}=${value}`,
    },
  });
}

function parse(value: string): MediaType {
  const [name = '', ...params] = value.split(';').map((part) => part.trim().toLowerCase());
  const version = params.find((param) => param.startsWith('compatible-with='));
  return { name, version: version?.slice('compatible-with='.length) };
}
