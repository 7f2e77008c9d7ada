// Completion while one types, as examples/search-ui does it: its index, its request, in the process that serves the page. Titles are those
// of WordNet or of the data folder, typed letter by letter. Texts are left out: completion looks at titles alone.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { Sparrow } from '@sparrow-search/engine';

import { SETTINGS, TITLE, complete } from '../../examples/search-ui/search.mjs';
import { StepFailed } from '../../scripts/lib/process.mjs';
import { summarize } from '../lib/statistics.mjs';

export const title = 'completion while one types';

const SIZES = {
  smoke: { documents: 500, titles: 20 },
  quick: { documents: 100_000, titles: 200 },
  full: { documents: 100_000, titles: 1000 },
};
/** Letters of a title that are typed. */
const TYPED = 24;
/** Milliseconds of a key press. */
const TARGET = { at_most: 20 };

/** @param {import('../lib/context.mjs').Context} context */
export async function run(context) {
  const { documents, titles } = SIZES[context.size];
  const texts = await context.texts(documents);
  const data = mkdtempSync(join(tmpdir(), 'sparrow-completion-'));
  const sparrow = await Sparrow.open({ data });
  try {
    const index = sparrow.index('articles');
    await index.ensure({ settings: SETTINGS, mappings: { properties: { title: TITLE } } });
    await index.bulk(
      texts.map(({ title }) => ({ title })),
      { refresh: true },
    );
    const step = Math.floor(texts.length / titles);
    const times = [];
    for (let at = 0; at < titles; at += 1) {
      const letters = [...texts[at * step].title].slice(0, TYPED);
      for (let length = 1; length <= letters.length; length += 1) {
        const typed = letters.slice(0, length).join('').trim();
        const begun = performance.now();
        const found = await complete(index, typed);
        times.push(performance.now() - begun);
        check(typed, found);
      }
    }
    const { p50, p99, max } = summarize(times);
    const of = `${times.length.toLocaleString('en-US')} key presses, ${texts.length.toLocaleString('en-US')} documents`;
    const row = (what, sparrow, target = null) => ({
      what: `${of}, ${what}`,
      unit: 'ms',
      sparrow,
      target,
      checked: 'every suggestion has a word that begins as each that is typed',
    });
    return { rows: [row('p50', p50), row('p99', p99, context.size === 'smoke' ? null : TARGET), row('longest', max)] };
  } finally {
    await sparrow.close();
    rmSync(data, { recursive: true, force: true });
  }
}

/** A title is suggested for the beginning of itself, and all that are suggested have the words. */
function check(typed, found) {
  const words = typed.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [];
  if (found.length === 0 && words.length > 0) throw new StepFailed(`nothing is suggested for [${typed}]`);
  for (const title of found) {
    const lower = title.toLowerCase();
    const missing = words.find((word) => !lower.includes(word));
    if (missing !== undefined) throw new StepFailed(`[${title}] is suggested for [${typed}]`);
  }
}
