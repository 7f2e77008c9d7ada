import { McpServer } from '@modelcontextprotocol/server';
import { afterEach, describe, expect, it, vi } from 'vitest';

import { LocalExchange } from '../in-process/local-exchange.js';
import { answerMessage } from './http.js';

afterEach(() => {
  vi.restoreAllMocks();
});

const listing = (id: unknown, params: object = {}): object => ({ jsonrpc: '2.0', id, method: 'tools/list', params });

async function answered(message: unknown, isWriting = false): Promise<any> {
  const exchange = new LocalExchange({ method: 'POST', path: '/mcp' });
  const sender = { caller: 'a', onGone: () => () => undefined };
  const body = Buffer.from(JSON.stringify(message));
  const answer = await answerMessage(exchange, body, sender, () => new Response(), isWriting);
  return JSON.parse(Buffer.from(answer.body ?? '').toString()) as unknown;
}

describe('the list of tools', () => {
  it('is made once for all messages, which differ in their ids', async () => {
    const registered = vi.spyOn(McpServer.prototype, 'registerTool');
    const { result, id } = await answered(listing(1));
    expect([id, result.tools.length, registered.mock.calls.length]).toEqual([1, 6, 6]);
    for (const other of ['x"y', 7, '\u0001id\u0001']) {
      expect(await answered(listing(other))).toEqual({ jsonrpc: '2.0', id: other, result });
    }
    expect(registered).toHaveBeenCalledTimes(6);
    const writing = await answered(listing(1), true);
    expect([writing.result.tools.length, registered.mock.calls.length]).toEqual([9, 15]);
  });

  it('keeps no more than some of the ways in which it is asked for', async () => {
    for (let at = 0; at < 40; at += 1) await answered(listing(1, { _meta: { at } }));
    const registered = vi.spyOn(McpServer.prototype, 'registerTool');
    await answered(listing(1, { _meta: { at: 39 } }));
    expect(registered).not.toHaveBeenCalled();
    await answered(listing(1, { _meta: { at: 0 } }));
    expect(registered).toHaveBeenCalledTimes(6);
  });

  it('is in an answer once', async () => {
    await expect(answered([listing(1), listing(2)])).rejects.toThrow('it is the same in each answer');
    expect(await answered([listing(1), { jsonrpc: '2.0', id: 2, method: 'ping' }])).toHaveLength(2);
  });
});
