// What can be asked: read out of the server's own OpenAPI document.

interface Operation {
  readonly operationId: string;
  readonly summary: string;
  readonly requestBody?: { readonly content?: Readonly<Record<string, { readonly schema: Schema }>> };
}

/** What the document says of a value. */
export interface Schema {
  readonly $ref?: string;
  readonly anyOf?: readonly Schema[];
  readonly items?: Schema;
  readonly enum?: readonly string[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: Schema | boolean;
}

/** What a body holds, with the schemas that it refers to. */
export interface Body {
  readonly schema: Schema;
  readonly schemas: Readonly<Record<string, Schema>>;
}

interface Document {
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> };
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
}

export interface Endpoint {
  readonly method: string;
  /** With `{name}` for parameters. */
  readonly path: string;
  readonly summary: string;
  readonly takesBody: boolean;
  /** What a body in JSON holds. */
  readonly body: Body | undefined;
  /** Whether a `POST` to the same path does the same. */
  readonly sameAsPost: boolean;
}

const METHODS = ['get', 'post', 'put', 'delete', 'head'];

export function catalogOf({ paths, components: { schemas } }: Document): Endpoint[] {
  return Object.entries(paths).flatMap(([path, item]) =>
    METHODS.flatMap((method): Endpoint[] => {
      const operation = item[method];
      if (operation === undefined) return [];
      const post = item['post'];
      const schema = operation.requestBody?.content?.['application/json']?.schema;
      return [
        {
          method: method.toUpperCase(),
          path,
          summary: operation.summary,
          takesBody: operation.requestBody !== undefined,
          body: schema && { schema, schemas },
          // `search_get_by_index` and `search_post_by_index` are one operation.
          sameAsPost: method === 'get' && post?.operationId === operation.operationId.replace('_get', '_post'),
        },
      ];
    }),
  );
}

/** The endpoint that a request is for: as in the server, literal parts of a path win over parameters. */
export function endpointFor(catalog: readonly Endpoint[], method: string, path: string): Endpoint | undefined {
  const parts = segments(path);
  const fits = catalog.filter((endpoint) => {
    const wanted = segments(endpoint.path);
    return (
      endpoint.method === method &&
      wanted.length === parts.length &&
      wanted.every(
        (one, at) => one === parts[at] || (one.startsWith('{') && !(at === 0 && parts[0]?.startsWith('_') === true)),
      )
    );
  });
  return fits.sort((a, b) => rank(a.path) - rank(b.path))[0];
}

function rank(path: string): number {
  return segments(path).reduce((all, part) => all * 2 + (part.startsWith('{') ? 1 : 0), 0);
}

function segments(path: string): string[] {
  return (path.split('?')[0] ?? '').split('/').filter((part) => part !== '');
}

export interface Written {
  readonly method: string;
  readonly path: string;
  readonly body: string;
}

/** What is really sent for what was written, and what is to be said about it. */
export type Plan = { readonly send: Written; readonly says?: string } | { readonly refused: string };

/**
 * Decides how a request goes out. A browser sends no body with a GET: where a POST is the same it takes its place, and a body that
 * nobody would read is left out; both are said.
 */
export function planFor(catalog: readonly Endpoint[], written: Written): Plan {
  const { method, path, body } = written;
  const endpoint = endpointFor(catalog, method, path);
  if (body.trim() === '') return { send: { ...written, body: '' } };
  if (endpoint !== undefined && !endpoint.takesBody) {
    return {
      send: { ...written, body: '' },
      says: `${method} ${endpoint.path} takes no body: what is in the box was not sent.`,
    };
  }
  if (method !== 'GET' && method !== 'HEAD') return { send: written };
  if (endpoint?.sameAsPost === true) {
    return {
      send: { ...written, method: 'POST' },
      says: 'Sent as POST.',
    };
  }
  return {
    refused:
      'A browser cannot send a body with GET, and this path does not take a POST in its place. Empty the body, or send it with curl.',
  };
}

/** Splits `GET /books/_search`; a path alone is a GET. */
export function splitLine(line: string): { method: string; path: string } | undefined {
  const found = /^\s*(?:([A-Za-z]+)\s+)?(\/?\S+)\s*$/.exec(line);
  if (found === null) return undefined;
  const [, method = 'GET', path = ''] = found;
  return { method: method.toUpperCase(), path: path.startsWith('/') ? path : `/${path}` };
}
