import type { McpServer } from '@modelcontextprotocol/server';
import { z } from 'zod';

import { explained } from './indices.js';
import { type RestInterface, ToolError } from './rest-interface.js';

/** What a tool works with while it answers one call. */
export interface Call {
  readonly rest: RestInterface;
  /** Is aborted when the client of the call goes away. */
  readonly signal: AbortSignal;
}

/** One tool: what a model reads about it, and what it does. */
interface Definition<Input extends z.ZodObject, Output extends z.ZodObject> {
  readonly name: string;
  readonly title: string;
  /** What the tool does and when to choose it, in sentences that a language model reads. */
  readonly description: string;
  readonly input: Input;
  readonly output: Output;
  /** `read` changes nothing; `add` only adds; `change` may replace or delete what is there. */
  readonly effect: 'read' | 'add' | 'change';
  readonly run: (args: z.output<Input>, call: Call) => Promise<z.input<Output>>;
}

/** A tool that can be given to a server. */
export interface Tool {
  readonly isWriting: boolean;
  addTo(server: McpServer, rest: RestInterface): void;
}

/** The name of an index in the arguments of a tool. */
export const INDEX = z.string().min(1).max(500);

/** The id of a document: the longest that there may be has 512 bytes. */
export const ID = z.string().min(1).max(512);

/** A document or another object, whatever its fields are. */
export const OBJECT = z.record(z.string(), z.unknown());

/** Makes a tool of its definition: errors become answers that say what to do next, as a model does not see any others. */
export function tool<Input extends z.ZodObject, Output extends z.ZodObject>(
  definition: Definition<Input, Output>,
): Tool {
  const { name, title, description, input, output, effect, run } = definition;
  const annotations = {
    title,
    readOnlyHint: effect === 'read',
    destructiveHint: effect === 'change',
    // Asked twice, none of them does more than asked once, but to add documents without ids.
    idempotentHint: effect === 'read',
    // They look at this server alone.
    openWorldHint: false,
  };
  for (const schema of [input, output]) describeOnce(schema);
  return {
    isWriting: effect !== 'read',
    addTo(server, rest) {
      server.registerTool<z.ZodObject, z.ZodObject>(
        name,
        { title, description, inputSchema: input, outputSchema: output, annotations },
        async (args, context) => {
          const { signal } = context.mcpReq;
          try {
            const result = await run(args as z.output<Input>, { rest, signal });
            return { content: [{ type: 'text', text: JSON.stringify(result) }], structuredContent: result };
          } catch (error) {
            signal.throwIfAborted();
            const { index } = args as { readonly index?: unknown };
            const told = await explained(rest, error, typeof index === 'string' ? index : undefined);
            return { content: [{ type: 'text', text: sentenceOf(told) }], isError: true };
          }
        },
      );
    },
  };
}

/** Makes the JSON of a schema once for each form that is asked for: the library asks for it for each list of the tools, and it takes longer than the rest of that. */
function describeOnce(schema: z.ZodObject): void {
  const standard = schema['~standard'];
  const once = (make: typeof standard.jsonSchema.input): typeof make => {
    const made = new Map<string, ReturnType<typeof make>>();
    return (options) => {
      const form = JSON.stringify(options);
      let json = made.get(form);
      if (json === undefined) made.set(form, (json = make(options)));
      return json;
    };
  };
  const jsonSchema = { input: once(standard.jsonSchema.input), output: once(standard.jsonSchema.output) };
  Object.defineProperty(schema, '~standard', { value: { ...standard, jsonSchema } });
}

function sentenceOf(error: unknown): string {
  if (error instanceof ToolError) return error.message;
  // Errors of the connection say themselves what to do.
  return error instanceof Error ? `The server could not be asked: ${error.message}` : String(error);
}
