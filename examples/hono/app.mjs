// Notes that are found by what they mean: a Hono application with the engine inside.
import { SparrowError } from '@sparrow-search/engine';
import { Hono } from 'hono';
import { html } from 'hono/html';

/** Most notes that a page shows. */
const SHOWN = 20;
const LONGEST_NOTE = 10_000;

/**
 * The application over an open engine, which the caller closes.
 *
 * @param {import('@sparrow-search/engine').Sparrow} sparrow
 */
export async function notesApp(sparrow) {
  const notes = sparrow.index('notes');
  // Words, sparse and dense vectors of the same text.
  const semantic = { type: 'semantic_text', inference_id: '.hybrid' };
  await notes.ensure({
    mappings: { properties: { text: { type: 'text', fields: { semantic } }, written: { type: 'date' } } },
  });

  /** The notes that fit a question, by all three lists; without one the latest notes. */
  const find = async (question, signal) => {
    const request =
      question === ''
        ? { query: { match_all: {} }, sort: [{ written: 'desc' }] }
        : { retriever: { linear: { query: question } } };
    const { hits } = await notes.search({ ...request, size: SHOWN }, { signal });
    return hits.hits.map(({ _id, _source }) => ({ id: _id, ..._source }));
  };
  const write = async (given) => {
    const text = typeof given === 'string' ? given.trim() : '';
    if (text === '' || text.length > LONGEST_NOTE) return undefined;
    // `refresh`: whoever wrote it finds it at once.
    return (await notes.add({ text, written: new Date().toISOString() }, { refresh: true }))._id;
  };
  const REFUSED = `a note is a text of 1 to ${LONGEST_NOTE} characters`;

  const app = new Hono();
  app.get('/', async (c) => {
    const question = c.req.query('q')?.trim() ?? '';
    return c.html(page(question, await find(question, c.req.raw.signal)));
  });
  app.post('/', async (c) => {
    const { text } = await c.req.parseBody();
    return (await write(text)) === undefined ? c.text(REFUSED, 400) : c.redirect('/', 303);
  });
  app.get('/notes', async (c) => c.json(await find(c.req.query('q')?.trim() ?? '', c.req.raw.signal)));
  app.post('/notes', async (c) => {
    const body = await c.req.json().catch(() => undefined);
    const id = await write(body?.text);
    return id === undefined ? c.json({ error: REFUSED }, 400) : c.json({ id }, 201);
  });
  app.get('/notes/:id', async (c) => {
    const note = await notes.get(c.req.param('id'));
    return note === undefined ? c.notFound() : c.json(note);
  });
  app.delete('/notes/:id', async (c) =>
    (await notes.delete(c.req.param('id'), { refresh: true })) ? c.body(null, 204) : c.notFound(),
  );
  app.onError((error, c) => {
    // What the engine refuses has the status and the reason of its REST interface.
    if (error instanceof SparrowError) return c.json({ error: error.message }, error.status);
    console.error(error);
    return c.json({ error: 'internal error' }, 500);
  });
  return app;
}

/** `html` escapes what is put into it. */
function page(question, found) {
  return html`<!doctype html>
    <html lang="en">
      <meta charset="utf-8" />
      <meta name="viewport" content="width=device-width, initial-scale=1" />
      <title>Notes</title>
      <style>
        body {
          font:
            1rem/1.5 system-ui,
            sans-serif;
          max-width: 40rem;
          margin: 2rem auto;
          padding: 0 1rem;
        }
        form {
          display: flex;
          gap: 0.5rem;
          margin: 1rem 0;
        }
        input,
        textarea {
          flex: 1;
          font: inherit;
          padding: 0.4rem;
        }
        li {
          margin: 0.5rem 0;
          white-space: pre-line;
        }
      </style>
      <h1>Notes</h1>
      <form>
        <input name="q" value="${question}" placeholder="Ask in your own words" aria-label="Question" /><button>
          Find
        </button>
      </form>
      <ul>
        ${found.map(({ text }) => html`<li>${text}</li>`)}
      </ul>
      <form method="post">
        <textarea name="text" required aria-label="A new note"></textarea><button>Write</button>
      </form>
    </html>`;
}
