// Serves the page and what it asks for, with the engine inside. Vite compiles the page, and reloads it when its files change.
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { fileURLToPath } from 'node:url';

import { getRequestListener } from '@hono/node-server';
import { Sparrow, SparrowError } from '@sparrow-search/engine';
import { Hono } from 'hono';
import { createServer as createVite } from 'vite';

import { openArticles } from './search.mjs';

const beside = (name) => readFileSync(new URL(name, import.meta.url), 'utf8');
const LONGEST_QUESTION = 1000;

const sparrow = await Sparrow.open({ data: process.env.DATA ?? './articles-data' });
const { suggest, search, why } = await openArticles(sparrow, JSON.parse(beside('articles.json')));

const app = new Hono();
const asked = (c, name) => (c.req.query(name) ?? '').trim().slice(0, LONGEST_QUESTION);
app.get('/', async (c) => c.html(await vite.transformIndexHtml('/', beside('page/index.html'))));
app.get('/suggest', async (c) => c.json(await suggest(asked(c, 'q'))));
app.get('/search', async (c) => c.json(await search(asked(c, 'q'), asked(c, 'topic'))));
app.get('/why', async (c) => c.json(await why(asked(c, 'q'), asked(c, 'id'))));
app.onError((error, c) => {
  if (error instanceof SparrowError) return c.json({ error: error.message }, error.status);
  console.error(error);
  return c.json({ error: 'internal error' }, 500);
});

const server = createServer();
const root = fileURLToPath(new URL('page', import.meta.url));
const vite = await createVite({
  configFile: false,
  root,
  appType: 'custom',
  logLevel: 'warn',
  // Of files, only those of the page are handed out.
  server: { middlewareMode: true, hmr: { server }, fs: { allow: [root] } },
});
const answer = getRequestListener(app.fetch);
server.on('request', (request, response) => {
  vite.middlewares(request, response, () => void answer(request, response));
});
server.listen(Number(process.env.PORT ?? 3000), '127.0.0.1', () => {
  console.log(`http://127.0.0.1:${server.address().port}`);
});
for (const signal of ['SIGINT', 'SIGTERM']) {
  process.once(signal, () => {
    server.close(() => void Promise.all([vite.close(), sparrow.close()]).then(() => process.exit(0)));
    // A browser keeps its connections open.
    server.closeAllConnections();
  });
}
