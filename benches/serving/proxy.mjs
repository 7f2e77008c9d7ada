// `node proxy.mjs URL`: hands each request on to URL and its answer back, with Node's server and undici, which Sparrow has too. What it
// adds to an answer is what any process in between costs here. Prints its own address.
import { createServer } from 'node:http';
import process from 'node:process';

import { Pool } from 'undici';

const pool = new Pool(process.argv[2]);

const server = createServer(async (request, response) => {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  const answer = await pool.request({
    path: request.url,
    method: request.method,
    headers: { 'content-type': 'application/json' },
    body: Buffer.concat(chunks),
  });
  const body = Buffer.from(await answer.body.arrayBuffer());
  response.writeHead(answer.statusCode, { 'content-type': 'application/json', 'content-length': body.length });
  response.end(body);
});

server.listen(0, '127.0.0.1', () => console.log(`http://127.0.0.1:${server.address().port}`));
