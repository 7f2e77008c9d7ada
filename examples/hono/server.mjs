// Opens the engine, serves the application, and closes both in good order.
import { serve } from '@hono/node-server';
import { Sparrow } from '@sparrow-search/engine';

import { notesApp } from './app.mjs';

const sparrow = await Sparrow.open({ data: process.env.DATA ?? './notes-data' });
const app = await notesApp(sparrow);
const server = serve(
  { fetch: app.fetch, hostname: '127.0.0.1', port: Number(process.env.PORT ?? 3000) },
  ({ port }) => {
    console.log(`http://127.0.0.1:${port}`);
  },
);

for (const signal of ['SIGINT', 'SIGTERM']) {
  process.once(signal, () => {
    server.close(() => void sparrow.close().then(() => process.exit(0)));
  });
}
