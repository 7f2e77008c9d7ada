import { describe, expect, it } from 'vitest';

import { createLogger, formatFor, printable } from './log.js';

/** As clients may send them: what a terminal obeys, turns around, or does not show. */
const STRANGE = 'a\u009b31m\u0085\u007f\u202egnp\u2066\u200b\ufeff\u2028\u00ad\u{e0041}';

describe('a line of the log', () => {
  it.each(['json', 'text'] as const)('shows in %s what nobody would see', (format) => {
    const written: string[] = [];
    const log = createLogger('info', (line) => written.push(line), format);
    log.warn(`a sentence with ${STRANGE}\nand more`, { path: `/${STRANGE}`, opaque_id: STRANGE });
    expect(written).toHaveLength(1);
    expect(written[0]).toMatch(/^[ -~]*\n$/);
    for (const shown of ['\\u009b31m', '\\u0085', '\\u007f', '\\u202egnp', '\\u2066', '\\u200b', '\\udb40\\udc41']) {
      expect(written[0]).toContain(shown);
    }
    if (format === 'json')
      expect(JSON.parse(written[0] ?? '')).toMatchObject({ path: `/${STRANGE}`, opaque_id: STRANGE });
  });

  it('is text on a terminal and JSON elsewhere, unless a format is asked for', () => {
    expect([formatFor(undefined, true), formatFor(undefined, false)]).toEqual(['text', 'json']);
    expect([formatFor('json', true), formatFor('text', false)]).toEqual(['json', 'text']);
  });

  it('leaves all other letters as they are', () => {
    expect(printable('plain: ä 東京 مرحبا 😀 \\ "')).toBe('plain: ä 東京 مرحبا 😀 \\ "');
  });
});
