import { describe, expect, it } from 'vitest';

import type { Call } from '../middleware/call.js';
import { multiSearchTemplate, renderTemplate } from './templates.js';

/** A request of a caller, who stays. */
function callOf(caller: string, body: string): Call {
  return {
    caller: { id: caller },
    services: { scripts: { current: () => Promise.resolve(new Map()) } },
    exchange: { from: '', onGone: () => () => undefined },
    path: {},
    body: Buffer.from(body),
  } as unknown as Call;
}

/** A template whose sections are repeated as often for two lists, one in the other, below as many other sections. */
function loops(items: number, levels = 40): object {
  const open = '{{#t}}'.repeat(levels);
  const close = '{{/t}}'.repeat(levels);
  return {
    source: `{"a":"${open}{{#l}}{{#l}}{{/l}}{{/l}}${close}"}`,
    params: { t: true, l: Array<number>(items).fill(0) },
  };
}
const template = (items: number): string => JSON.stringify(loops(items));

describe('filling in templates', () => {
  it('takes at most so many steps', async () => {
    const rendered = await renderTemplate(callOf('a', template(200)));
    expect(rendered.body).toBe('{"template_output":{"a":""}}');
    await expect(renderTemplate(callOf('a', template(400)))).rejects.toThrow('takes more than [100000] steps');
  });

  it('takes as many for all templates of a request', async () => {
    const body = `{}\n${JSON.stringify(loops(150))}\n`.repeat(5);
    await expect(multiSearchTemplate(callOf('a', body))).rejects.toThrow('takes more than [100000] steps');
  });

  it('counts what nested functions write again', async () => {
    const nested = (levels: number): string =>
      JSON.stringify({
        source: `{"a":"${'{{#url}}'.repeat(levels)}${'a'.repeat(60_000)}${'{{/url}}'.repeat(levels)}"}`,
      });
    expect((await renderTemplate(callOf('a', nested(2)))).status).toBe(200);
    await expect(renderTemplate(callOf('a', nested(30)))).rejects.toThrow('takes too much');
  });

  it('takes at most so many values', async () => {
    const body = JSON.stringify({ source: '{}', params: { a: Array<number>(100_001).fill(1) } });
    await expect(renderTemplate(callOf('a', body))).rejects.toThrow('send fewer parameters');
  });

  it('lets others have turns, and callers by turns', async () => {
    const done: string[] = [];
    let [turns, isOver] = [0, false];
    const other = (): void => {
      turns += 1;
      if (!isOver) setImmediate(other);
    };
    setImmediate(other);
    const rendering = async (caller: string): Promise<void> => {
      await renderTemplate(callOf(caller, template(250)));
      done.push(caller);
    };
    await Promise.all([...Array.from({ length: 20 }, () => rendering('a')), rendering('b')]);
    isOver = true;
    expect(turns).toBeGreaterThan(5);
    expect(done.indexOf('b')).toBeLessThan(3);
  });
});
