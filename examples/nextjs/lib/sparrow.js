// The engine of the application: one for the process, as a data directory is for one.
import { Sparrow } from '@sparrow-search/engine';

/** Next.js loads modules anew while one develops; what is global stays. */
const PLACE = Symbol.for('sparrow');

/** The index of the notes, of which the first call opens the engine. */
export function notes() {
  globalThis[PLACE] ??= open();
  return globalThis[PLACE];
}

async function open() {
  const sparrow = await Sparrow.open({ data: process.env.DATA ?? './notes-data' });
  const index = sparrow.index('notes');
  const semantic = { type: 'semantic_text', inference_id: '.hybrid' };
  await index.ensure({ mappings: { properties: { text: { type: 'text', fields: { semantic } } } } });
  return index;
}
