// Calls the route handler as Next.js does, without Next.js: a request of the Web's goes in, and a response comes out.
import { serve } from '@hono/node-server';

import * as route from './app/api/search/route.js';

const server = serve(
  {
    fetch: (request) => {
      if (new URL(request.url).pathname !== '/api/search') return new Response(null, { status: 404 });
      const handler = Object.hasOwn(route, request.method) ? route[request.method] : undefined;
      return handler === undefined ? new Response(null, { status: 405 }) : handler(request);
    },
    hostname: '127.0.0.1',
    port: Number(process.env.PORT ?? 3000),
  },
  ({ port }) => {
    console.log(`http://127.0.0.1:${port}`);
  },
);

for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => server.close(() => process.exit(0)));
