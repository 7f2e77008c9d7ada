import { isObject } from './json.js';
import { passedOn } from './replies.js';
import type { Asked, Transport } from './transport.js';

/**
 * What the cluster has of something; undefined where it is not there.
 *
 * @throws {EngineError} the cluster's own answer where it says neither
 */
export async function readThere(transport: Transport, asked: Asked): Promise<unknown> {
  const { status, body } = await transport.json(asked);
  if (status === 404) return undefined;
  if (status !== 200) throw passedOn({ status, body: Buffer.from(JSON.stringify(body ?? {})) });
  return body;
}

/**
 * The index that writes to an alias or a data stream go to; undefined where an alias of several indices takes none.
 *
 * @throws {EngineError} the cluster's own answer where it does not say
 */
export async function writeIndexOf(transport: Transport, name: string): Promise<string | undefined> {
  const aliases = await readThere(transport, { method: 'GET', path: `/_alias/${encodeURIComponent(name)}` });
  const found = isObject(aliases) ? Object.entries(aliases) : [];
  const [only, second] = found;
  if (only !== undefined && second === undefined) return only[0];
  if (only !== undefined) return found.find(([, it]) => isWritten(it, name))?.[0];
  const streams = await readThere(transport, { method: 'GET', path: `/_data_stream/${encodeURIComponent(name)}` });
  const list = isObject(streams) ? streams['data_streams'] : undefined;
  const [stream] = Array.isArray(list)
    ? (list as { readonly indices: readonly { readonly index_name: string }[] }[])
    : [];
  return stream?.indices.at(-1)?.index_name;
}

function isWritten(of: unknown, alias: string): boolean {
  const aliases = isObject(of) ? of['aliases'] : undefined;
  const one = isObject(aliases) && Object.hasOwn(aliases, alias) ? aliases[alias] : undefined;
  return isObject(one) && one['is_write_index'] === true;
}
