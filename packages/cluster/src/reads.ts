import type { Cancel, EngineReply, EngineRequest } from '@sparrow-search/engine';

import { illegal, unparsable } from './errors.js';
import { type Json, decode, isObject, parse, parseRequest, parseAnswer } from './json.js';
import { encodeExpression } from './names.js';
import { withShownId } from './points-in-time.js';
import { readSearch } from './reading.js';
import { replyOf, stoppable } from './replies.js';
import type { Searching } from './search.js';
import { withFieldNames } from './semantic-names.js';

/** Reading documents one by one and page by page. */
export class Reads {
  readonly #context: Searching;

  constructor(context: Searching) {
    this.#context = context;
  }

  answer(request: EngineRequest, body: Uint8Array | undefined, cancel?: Cancel): Promise<EngineReply> {
    return stoppable(cancel, (signal) => {
      switch (request.op) {
        case 'explain':
          return this.#explain(request, body, signal, cancel);
        case 'mget':
          return this.#mget(request, body, signal);
        case 'open_point_in_time':
        case 'close_point_in_time':
          return this.#pointInTime(request, body, signal);
        default:
          return this.#scroll(request, body, signal);
      }
    });
  }

  async #explain(
    request: EngineRequest,
    body: Uint8Array | undefined,
    signal: AbortSignal,
    cancel?: Cancel,
  ): Promise<EngineReply> {
    const { transport, names, semantic } = this.#context;
    const { index = '', id = '' } = request.path;
    await names.check(request, [index]);
    let sent: string | undefined;
    if (body !== undefined && body.length > 0) {
      sent = (await readSearch(this.#context, request, index, decode(body), cancel)).translated();
    }
    const path = `/${encodeURIComponent(index)}/_explain/${encodeURIComponent(id)}`;
    const asked = { method: 'POST', path, query: request.query, body: sent, signal, repeatable: true } as const;
    return withFieldNames(await semantic.of(index), replyOf(await transport.ask(asked)));
  }

  async #mget(request: EngineRequest, body: Uint8Array | undefined, signal: AbortSignal): Promise<EngineReply> {
    const { transport, names } = this.#context;
    const { index } = request.path;
    const given = body === undefined ? {} : parseRequest(decode(body));
    const docs = isObject(given) && Array.isArray(given['docs']) ? (given['docs'] as unknown[]) : [];
    const inside = docs.flatMap((it) => (isObject(it) && '_index' in it ? [it['_index']] : []));
    const all = new Set([...(index === undefined ? [] : [index]), ...inside.filter((it) => typeof it === 'string')]);
    // The cluster reads a number, or nothing, as a name of its own choice.
    if (request.rights !== undefined && !inside.every((it) => typeof it === 'string')) {
      throw unparsable('[_index] of a document has to be a string');
    }
    await names.check(request, [...all], request.rights === undefined ? request.action : 'indices:data/read/get');
    const path = `${index === undefined ? '' : `/${encodeURIComponent(index)}`}/_mget`;
    return replyOf(await transport.ask({ method: 'POST', path, query: request.query, body, signal, repeatable: true }));
  }

  async #scroll(request: EngineRequest, body: Uint8Array | undefined, signal: AbortSignal): Promise<EngineReply> {
    const { scroll_id: id, ...query } = request.query;
    const given = body === undefined || body.length === 0 ? {} : parse(decode(body));
    const inPath = request.path['scroll_id'] ?? id;
    const sent = { ...(isObject(given) ? given : {}), ...(inPath === undefined ? {} : { scroll_id: inPath }) };
    const isClear = request.op === 'clear_scroll';
    if (!('scroll_id' in sent)) throw illegal('scroll_id is missing');
    const { seals, transport } = this.#context;
    const shown = [sent['scroll_id']].flat().map(String);
    const all = await Promise.all(shown.map((one) => seals.opened(request, one)));
    const [first] = all;
    const own = Array.isArray(sent['scroll_id']) ? all.map((one) => one.id) : first?.id;
    const answered = await transport.ask({
      method: isClear ? 'DELETE' : 'POST',
      path: '/_search/scroll',
      query,
      body: JSON.stringify({ ...sent, scroll_id: own }),
      signal,
      repeatable: false,
    });
    if (first === undefined || first.seal === '') return replyOf(answered);
    return withShownId(replyOf(answered), '_scroll_id', (next) => seals.shown(first.expression, next));
  }

  async #pointInTime(request: EngineRequest, body: Uint8Array | undefined, signal: AbortSignal): Promise<EngineReply> {
    const { transport, product, names, seals } = this.#context;
    const isOpenSearch = product.name === 'OpenSearch';
    if (request.op === 'close_point_in_time') {
      const given = body === undefined ? undefined : parse(decode(body));
      const id = isObject(given) ? given['id'] : undefined;
      if (typeof id !== 'string') throw illegal('[id] of a point in time is missing');
      const path = isOpenSearch ? '/_search/point_in_time' : '/_pit';
      const { id: own } = await seals.opened(request, id);
      const sent = JSON.stringify(isOpenSearch ? { pit_id: [own] } : { id: own });
      const closed = await transport.ask({ method: 'DELETE', path, body: sent, signal });
      if (!isOpenSearch || closed.status !== 200) return replyOf(closed);
      return { status: 200, body: Buffer.from(JSON.stringify({ succeeded: true, num_freed: 1 })) };
    }
    const expression = await names.expression(request, request.path['index']);
    if (request.rights !== undefined && expression === undefined)
      throw illegal('a point in time needs an index that the key may use');
    const path = `/${encodeExpression(expression ?? '')}/${isOpenSearch ? '_search/point_in_time' : '_pit'}`;
    const answered = await transport.ask({ method: 'POST', path, query: request.query, body, signal });
    if (answered.status !== 200) return replyOf(answered);
    const { pit_id: ofOpenSearch, id = ofOpenSearch, _shards: shards } = parseAnswer(answered.body) as Json;
    // For a key that may use some indices only, what its patterns stand for now is what is open.
    const opened = request.rights === undefined ? (request.path['index'] ?? '*') : (expression ?? '');
    const shown = await seals.shown(opened, String(id));
    return { status: 200, body: Buffer.from(JSON.stringify({ id: shown, _shards: shards })) };
  }
}
