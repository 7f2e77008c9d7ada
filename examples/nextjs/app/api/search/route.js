// GET /api/search?q=… finds notes by what they mean, POST /api/search writes one.
import { SparrowError } from '@sparrow-search/engine';

import { notes } from '../../../lib/sparrow.js';

/** The addon needs Node: the edge runtime has none. */
export const runtime = 'nodejs';
/** Each question is asked anew. */
export const dynamic = 'force-dynamic';

const SHOWN = 10;
const LONGEST = 10_000;

/** @param {Request} request */
export async function GET(request) {
  const query = new URL(request.url).searchParams.get('q')?.trim() ?? '';
  if (query === '') return Response.json({ error: 'a question is needed: ?q=…' }, { status: 400 });
  return answered(async () => {
    const index = await notes();
    const { hits } = await index.search({ size: SHOWN, retriever: { linear: { query } } }, { signal: request.signal });
    return Response.json(hits.hits.map(({ _id: id, _score: score, _source }) => ({ id, score, ..._source })));
  });
}

/** @param {Request} request */
export async function POST(request) {
  const text = (await request.json().catch(() => undefined))?.text;
  if (typeof text !== 'string' || text.trim() === '' || text.length > LONGEST)
    return Response.json({ error: `a note is a text of 1 to ${LONGEST} characters` }, { status: 400 });
  return answered(async () => {
    const { _id: id } = await (await notes()).add({ text: text.trim() }, { refresh: true });
    return Response.json({ id }, { status: 201 });
  });
}

/** What the engine refuses has the status and the reason of its REST interface. */
async function answered(work) {
  try {
    return await work();
  } catch (error) {
    if (error instanceof SparrowError) return Response.json({ error: error.message }, { status: error.status });
    throw error;
  }
}
