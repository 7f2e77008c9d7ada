import { EngineError, type Operation, type SearchEngine } from '@sparrow-search/engine';

/** What hinders a migration, in one sentence. */
export class MigrationError extends Error {
  override readonly name = 'MigrationError';
}

/** A request to one of the two engines. */
export interface Request {
  readonly path?: Readonly<Record<string, string>>;
  readonly query?: Readonly<Record<string, string>>;
  readonly body?: string | object;
}

/** Asks an engine; resolves with the text of its answer. */
export async function askText(
  engine: SearchEngine,
  op: Operation,
  { path = {}, query = {}, body }: Request = {},
): Promise<string> {
  const text = typeof body === 'object' ? JSON.stringify(body) : body;
  const reply = await engine.execute({ op, path, query }, text === undefined ? undefined : Buffer.from(text));
  // What a cluster refuses comes as its answer, what Sparrow refuses is thrown.
  if (reply.status >= 400) throw new EngineError(reply.status, reply.body);
  return Buffer.from(reply.body).toString();
}

/** Asks an engine; resolves with its answer as a value. */
export async function ask<T>(engine: SearchEngine, op: Operation, request?: Request): Promise<T> {
  return JSON.parse(await askText(engine, op, request)) as T;
}
