import process from 'node:process';

import type { Command } from 'commander';

import { withTarget } from '../context.js';
import { Remote, type TargetOptions, findTarget } from '../remote.js';

interface Options extends TargetOptions {
  readonly write?: boolean;
}

/** `sparrow mcp`: the tools for agents over standard input and output, in front of a running server. */
export function addMcp(program: Command): void {
  withTarget(
    program
      .command('mcp')
      .description('give an agent tools to search, over standard input and output (Model Context Protocol)')
      .option('--write', 'with tools to create indices, and to add and delete documents'),
  ).action(async (options: Options) => {
    const remote = new Remote(findTarget(options, process.env));
    // The library for the protocol is loaded only here and for `POST /mcp`.
    const { serveOverStdio } = await import('@sparrow-search/http/mcp');
    await serveOverStdio(remote, options.write === true);
  });
}
