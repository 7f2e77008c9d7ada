import process from 'node:process';

import { serveStdio } from '@modelcontextprotocol/server/stdio';

import type { RestInterface } from './rest-interface.js';
import { mcpServer } from './server.js';

/** Speaks the Model Context Protocol over standard input and output until the input ends; `isWriting`: with the tools that change what is there. */
export async function serveOverStdio(rest: RestInterface, isWriting: boolean): Promise<void> {
  const handle = serveStdio(() => mcpServer(rest, isWriting), {
    onerror: (error) => {
      // Standard output belongs to the protocol.
      process.stderr.write(`sparrow: ${error.message}\n`);
    },
  });
  await new Promise<void>((resolve) => {
    for (const event of ['end', 'close', 'error']) process.stdin.once(event, resolve);
    // An agent that is gone reads nothing any more.
    process.stdout.on('error', resolve);
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, resolve);
  });
  await handle.close();
  // Requests under way would keep the process alive for nobody.
  process.exit(0);
}
