// `sparrow demo` against a real server.
import { readFileSync } from 'node:fs';

import { describe, expect, it } from 'vitest';

import { serve } from './served.js';

const { server, run, json, said } = await serve();

/** How far two processors may be apart in a relevance of 0..=1. */
const WITHIN = 0.01;

describe('demo', () => {
  it('loads a dictionary, finds words by what they mean, and cleans up behind itself', async () => {
    const shown = await said('demo');
    expect(shown).toMatch(/^Loaded 2,000 definitions in .*, each with a sparse and a dense vector\.\n/);
    const [, first = ''] = shown.split('\n\n');
    // No gloss of the right word has a word of the question: only its meaning leads there.
    expect(first).toMatch(/^“the study of stars”\n {2}by words, /);
    const [byWords = '', byBoth = ''] = first.split('by words and meaning');
    expect(byWords).not.toContain('▸');
    expect(byBoth).toContain('▸ astronomy');
    expect(shown).toContain(`${server.url}   `);
    expect(shown.split('“')).toHaveLength(7);

    const { loaded, questions } = await json('demo', 'rich person');
    expect(loaded).toBe(0);
    expect(questions).toHaveLength(1);
    expect(questions[0].hybrid.hits[0].words).toContain('rich person');

    // What the page about agents shows is what they get of it.
    const page = readFileSync(new URL('../../docs/mcp.md', import.meta.url), 'utf8');
    const [, request = ''] = /```sh\n[^`]*-d '([^']*)'\n```/.exec(page) ?? [];
    const [, answer = ''] = /```json answer\n([^`]*)```/.exec(page) ?? [];
    const { body } = await server.request('POST', '/mcp', JSON.parse(request));
    // The models' products of 8-bit numbers are rounded differently by different processors, which the second decimal shows: 0.347
    // with AVX-512 is 0.355 with AMX.
    const near = (name: string, value: unknown): unknown =>
      name === 'relevance' ? expect.closeTo(value as number, -Math.log10(2 * WITHIN)) : value;
    expect(body.result.structuredContent).toEqual(JSON.parse(answer, near));

    expect(await said('demo', '--remove')).toBe('[demo] is deleted\n');
    expect(await said('demo', '--remove')).toBe('there is no index [demo]\n');
  });

  it('completes a dictionary of which a part is missing', async () => {
    await json('demo', 'x', '--index', 'other-demo');
    const query = { query: { term: { part_of_speech: 'verb' } } };
    const { body } = await server.request('POST', '/other-demo/_delete_by_query?refresh=true', query);
    expect(body.deleted).toBeGreaterThan(100);
    expect((await json('demo', 'x', '--index', 'other-demo')).loaded).toBe(2000);
    expect((await server.request('GET', '/other-demo/_count')).body.count).toBe(2000);
    await said('demo', '--index', 'other-demo', '--remove');
  });

  it("writes to nobody's own index, and deletes none", async () => {
    for (const args of [['demo'], ['demo', '--remove']]) {
      const { code, stdout, stderr } = await run(...args, '--index', 'articles');
      expect([code, stdout]).toEqual([1, '']);
      expect(stderr).toBe(
        'sparrow: [articles] is one of your own indices: name another one for the demo with --index\n',
      );
    }
    expect((await server.request('GET', '/articles/_count')).body.count).toBe(3);
  });
});
