import { isObject } from './json.js';
import type { Transport } from './transport.js';

/** The index that writes to an alias or a data stream go to; undefined where an alias of several indices takes none. */
export async function writeIndexOf(transport: Transport, name: string): Promise<string | undefined> {
  const aliases = await transport.json({ method: 'GET', path: `/_alias/${encodeURIComponent(name)}` });
  const found = aliases.status === 200 && isObject(aliases.body) ? Object.entries(aliases.body) : [];
  const [only, second] = found;
  if (only !== undefined && second === undefined) return only[0];
  if (only !== undefined) return found.find(([, it]) => isWritten(it, name))?.[0];
  const streams = await transport.json({ method: 'GET', path: `/_data_stream/${encodeURIComponent(name)}` });
  const list = isObject(streams.body) ? streams.body['data_streams'] : undefined;
  const [stream] = Array.isArray(list)
    ? (list as { readonly indices: readonly { readonly index_name: string }[] }[])
    : [];
  return stream?.indices.at(-1)?.index_name;
}

function isWritten(of: unknown, alias: string): boolean {
  const aliases = isObject(of) ? of['aliases'] : undefined;
  const one = isObject(aliases) ? aliases[alias] : undefined;
  return isObject(one) && one['is_write_index'] === true;
}
