import { HttpError, RoutingError } from '@sparrow-search/endpoints';

/** Versions of the interface that a vendored media type may ask for. */
const VERSIONS = ['9', '8', '7'];

/** The version of a request that names none: the one that is complete here, which `GET /` says as well. */
const OWN_VERSION = '8';

const VENDOR = 'application/vnd.elasticsearch+';

/** Kinds of bodies by the last part of their media types. */
const KINDS = ['json', 'x-ndjson', 'yaml'] as const;

/** How a body is written. */
export type Kind = (typeof KINDS)[number];

/** Kinds that Elasticsearch has besides, which are refused by name. */
const BINARY = new Set(['cbor', 'smile']);

export const JSON_TYPE = 'application/json';
export const TEXT_TYPE = 'text/plain; charset=UTF-8';

/** How a request wants its answer. */
export interface Negotiated {
  /** Media type of an answer that is not text. */
  readonly type: string;
  readonly kind: 'json' | 'yaml';
  /** Whether the `Accept` header named JSON or YAML, which turns the text tables of `_cat` into that. */
  readonly explicit: boolean;
}

interface MediaType {
  readonly name: string;
  /** What is written behind `application/` or the vendor's prefix; empty for other types. */
  readonly kind: string;
  readonly vendored: boolean;
  readonly version: string | undefined;
}

/** Most header values that are remembered as read: clients send the same few with every request. */
const REMEMBERED = 200;

const TOKEN = /^[\w!#$%&'*+.^`|~-]+\/[\w!#$%&'*+.^`|~-]+$/;

const known = new Map<string, Negotiated>();
const readable = new Map<string, Kind>();
const spoken = new Map<string, number>();

/**
 * How a body is written, by its headers.
 *
 * @throws {RoutingError} 406 for a kind that is not read, {@link HttpError} 400 for a header that is malformed, an unknown
 *   version, or versions of the two headers that do not fit
 */
export function kindOfBody(contentType: string | undefined, accept: string | undefined): Kind {
  const key = `${contentType ?? ''}\n${accept ?? ''}`;
  const remembered = readable.get(key);
  if (remembered !== undefined) return remembered;
  const shown = contentType ?? '';
  const type = shown === '' ? undefined : strictly('Content-Type', shown);
  const kind = KINDS.find((one) => one === type?.kind);
  if (type === undefined || kind === undefined) {
    throw new RoutingError(406, `Content-Type header [${shown}] is not supported`);
  }
  checkVersion('Content-Type', shown, type);
  checkAgreement(type, shown, accept);
  if (readable.size < REMEMBERED) readable.set(key, kind);
  return kind;
}

/**
 * The version of the interface that a request speaks, by its headers: that of `Accept`, or else that of its body. Headers that
 * are refused for another reason are of no version of their own.
 */
export function versionOf(accept: string | undefined, contentType: string | undefined): number {
  const key = `${accept ?? ''}\n${contentType ?? ''}`;
  const remembered = spoken.get(key);
  if (remembered !== undefined) return remembered;
  const named = [...(accept ?? '').split(','), contentType ?? ''].map((range) => parse(range)?.version);
  const version = Number(named.find((one) => one !== undefined && VERSIONS.includes(one)) ?? OWN_VERSION);
  if (spoken.size < REMEMBERED) spoken.set(key, version);
  return version;
}

/**
 * The media type to answer with: what `format` or else `Accept` names first of what there is, else the kind of the
 * request's own body. An `Accept` that names nothing that is known is answered in JSON, as the original does.
 *
 * @throws {RoutingError} 406 for CBOR and SMILE, {@link HttpError} 400 for an unknown version or format
 */
export function negotiate(accept: string | undefined, contentType: string | undefined, format?: string): Negotiated {
  if (format !== undefined) return byFormat(format, accept);
  const key = `${accept ?? ''}\n${contentType ?? ''}`;
  const remembered = known.get(key);
  if (remembered !== undefined) return remembered;
  const negotiated = read(accept, contentType);
  if (known.size < REMEMBERED) known.set(key, negotiated);
  return negotiated;
}

function read(accept: string | undefined, contentType: string | undefined): Negotiated {
  // Of a list, what is malformed is passed over, as of any media range.
  const accepted = accept === undefined || accept === '' ? [] : accept.includes(',') ? ranges(accept) : single(accept);
  const type = accepted.find(({ kind }) => kind === 'json' || kind === 'x-ndjson' || kind === 'yaml');
  if (type === undefined) {
    const binary = accepted.every(({ kind }) => BINARY.has(kind)) ? accepted[0] : undefined;
    if (binary !== undefined) throw new RoutingError(406, `Accept header [${accept ?? ''}] is not supported`);
    const sent = parse(contentType ?? '');
    return sent !== undefined && KINDS.some((kind) => kind === sent.kind) ? answering(sent, false) : PLAIN_JSON;
  }
  checkVersion('Accept', accept ?? '', type);
  // The official clients accept text beside JSON everywhere, and mean text where text is what there is.
  return answering(type, !accepted.some(({ name }) => name === 'text/plain'));
}

const PLAIN_JSON: Negotiated = { type: JSON_TYPE, kind: 'json', explicit: false };

function byFormat(format: string, accept: string | undefined): Negotiated {
  // What else the header says about its version holds.
  const { type, kind, explicit } = negotiate(accept, undefined);
  switch (format) {
    case 'json':
    case 'yaml':
      return { type: format === kind && explicit ? type : `application/${format}`, kind: format, explicit: true };
    case 'cbor':
    case 'smile':
      throw new RoutingError(406, `format [${format}] is not supported, use [json] or [yaml]`);
    case 'text':
    case 'txt':
    case '':
      return { type, kind, explicit: false };
    default:
      throw new HttpError('illegal_argument', `format [${format}] is not supported, use [json] or [yaml]`);
  }
}

function answering({ kind, vendored, version }: MediaType, explicit: boolean): Negotiated {
  const answer = kind === 'yaml' ? 'yaml' : 'json';
  const parameter = version === undefined ? '' : `;compatible-with=${version}`;
  return { type: vendored ? `${VENDOR}${answer}${parameter}` : `application/${answer}`, kind: answer, explicit };
}

function single(accept: string): readonly MediaType[] {
  return accept.trim() === '*/*' ? [] : [strictly('Accept', accept)];
}

function ranges(accept: string): readonly MediaType[] {
  return accept.split(',').flatMap((part) => parse(part) ?? []);
}

/** @throws {HttpError} 400 unless the value is one well-formed media type */
function strictly(header: string, value: string): MediaType {
  const [name = '', ...parameters] = value.split(';').map((part) => part.trim());
  const problem = !TOKEN.test(name)
    ? `invalid media-type [${value}]`
    : parameters.some((parameter) => parameter !== '' && parameter.split('=').length !== 2)
      ? `invalid parameters for header [${value}]`
      : undefined;
  const type = problem === undefined ? parse(value) : undefined;
  if (type !== undefined) return type;
  throw new HttpError('media_type_version', `Invalid media-type value on headers [${header}]`, {
    causedBy: { type: 'illegal_argument_exception', reason: problem ?? `invalid media-type [${value}]` },
  });
}

function checkVersion(header: string, value: string, { version }: MediaType): void {
  if (version === undefined || VERSIONS.includes(version)) return;
  throw versions(`${header} version must be either version 9, 8 or 7, but found ${version}. ${header}=${value}`);
}

/** A body in one version of the interface whose answer is wanted in another. */
function checkAgreement(type: MediaType, contentType: string, accept: string | undefined): void {
  const accepted = accept === undefined ? undefined : accept.includes(',') ? ranges(accept) : [parse(accept)];
  // A list is not read as strictly as one type is.
  const wanted = accepted?.length === 1 ? accepted[0]?.version : type.version;
  if (wanted === type.version) return;
  const same = (wanted ?? OWN_VERSION) === (type.version ?? OWN_VERSION);
  throw versions(
    'A compatible version is required on both Content-Type and Accept headers if either one has requested a compatible ' +
      `version${same ? '' : ' and the compatible versions must match'}. Accept=${accept ?? 'null'}, Content-Type=${contentType}`,
  );
}

function versions(reason: string): HttpError {
  return new HttpError('media_type_version', 'Invalid media-type value on headers [Content-Type, Accept]', {
    causedBy: { type: 'status_exception', reason },
  });
}

function parse(value: string): MediaType | undefined {
  const [name = '', ...parameters] = value.split(';').map((part) => part.trim().toLowerCase());
  if (name === '') return undefined;
  const version = parameters
    .map((parameter) => parameter.split('=').map((part) => part.trim()))
    .find(([key]) => key === 'compatible-with')?.[1];
  const vendored = name.startsWith(VENDOR);
  const kind = vendored
    ? name.slice(VENDOR.length)
    : name.startsWith('application/')
      ? name.slice('application/'.length)
      : '';
  return { name, kind, vendored, version };
}
