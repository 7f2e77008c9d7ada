// Serves the page and what it asks for, with the engine inside.
import { readFileSync } from 'node:fs';

import { serve } from '@hono/node-server';
import { Sparrow, SparrowError } from '@sparrow-search/engine';
import { Hono } from 'hono';

import { openArticles } from './search.mjs';

const beside = (name) => readFileSync(new URL(name, import.meta.url), 'utf8');
const LONGEST_QUESTION = 1000;

const sparrow = await Sparrow.open({ data: process.env.DATA ?? './articles-data' });
const { suggest, search, why } = await openArticles(sparrow, JSON.parse(beside('articles.json')));

const app = new Hono();
const asked = (c, name) => (c.req.query(name) ?? '').trim().slice(0, LONGEST_QUESTION);
app.get('/', (c) => c.html(beside('page.html')));
app.get('/page.js', (c) => c.body(beside('page.js'), 200, { 'content-type': 'text/javascript' }));
app.get('/suggest', async (c) => c.json(await suggest(asked(c, 'q'))));
app.get('/search', async (c) => c.json(await search(asked(c, 'q'), asked(c, 'topic'))));
app.get('/why', async (c) => c.json(await why(asked(c, 'q'), asked(c, 'id'))));
app.onError((error, c) => {
  if (error instanceof SparrowError) return c.json({ error: error.message }, error.status);
  console.error(error);
  return c.json({ error: 'internal error' }, 500);
});

const server = serve(
  { fetch: app.fetch, hostname: '127.0.0.1', port: Number(process.env.PORT ?? 3000) },
  ({ port }) => {
    console.log(`http://127.0.0.1:${port}`);
  },
);
for (const signal of ['SIGINT', 'SIGTERM']) {
  process.once(signal, () => {
    server.close(() => void sparrow.close().then(() => process.exit(0)));
    // A browser keeps its connections open.
    server.closeAllConnections();
  });
}
