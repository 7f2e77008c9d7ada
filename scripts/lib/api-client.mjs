// A small client of a running Sparrow server for the project's own scripts; depends on nothing.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** Where the server leaves the owner key for local tools, under its data directory. */
const LOCAL_KEY_FILE = 'owner.key';

/**
 * The key a script should use: SPARROW_API_KEY, else the file that the server leaves for its own user.
 *
 * @param {string} dataDirectory
 * @returns {string} the `encoded` form
 */
export function findApiKey(dataDirectory) {
  if (process.env.SPARROW_API_KEY) return process.env.SPARROW_API_KEY;
  try {
    return readFileSync(join(dataDirectory, LOCAL_KEY_FILE), 'utf8').trim();
  } catch {
    throw new Error(
      `No API key: set SPARROW_API_KEY, or run this where the server's data directory is (looked in ${dataDirectory}).`,
    );
  }
}

/** An answer with a status of 400 or above. */
export class ApiError extends Error {
  constructor(method, path, status, body) {
    super(`${method} ${path} answered ${status}: ${body?.error?.reason ?? JSON.stringify(body)}`);
    this.status = status;
    this.body = body;
  }
}

/**
 * @param {{ url: string, apiKey: string }} options
 * @returns {(method: string, path: string, body?: unknown) => Promise<any>} sends a request; an object is sent as
 *   JSON, a string as NDJSON; rejects with {@link ApiError}
 */
export function createClient({ url, apiKey }) {
  return async function request(method, path, body) {
    const ndjson = typeof body === 'string';
    let response;
    try {
      response = await fetch(new URL(path, url), {
        method,
        headers: {
          authorization: `ApiKey ${apiKey}`,
          ...(body === undefined ? {} : { 'content-type': ndjson ? 'application/x-ndjson' : 'application/json' }),
        },
        body: body === undefined ? undefined : ndjson ? body : JSON.stringify(body),
      });
    } catch (error) {
      throw new Error(`No server at ${url}: start one with \`npm start\`. (${error.cause?.message ?? error.message})`, {
        cause: error,
      });
    }
    const text = await response.text();
    let parsed = text;
    try {
      parsed = JSON.parse(text);
    } catch {
      // Plain text, as `_cat` answers.
    }
    if (response.status >= 400) throw new ApiError(method, path, response.status, parsed);
    return parsed;
  };
}

/** Bulk request lines that index `documents` ({ _id, ...source }). */
export function bulkLines(documents) {
  return documents
    .map(({ _id, ...source }) => `${JSON.stringify({ index: { _id } })}\n${JSON.stringify(source)}\n`)
    .join('');
}

/** Waits for a task and reports its status as it goes. */
export async function waitForTask(request, task, onStatus = () => {}, pollMilliseconds = 200) {
  for (;;) {
    const answer = await request('GET', `/_tasks/${task}?detailed=true`);
    onStatus(answer.task.status, answer);
    if (answer.completed) {
      if (answer.error) throw new Error(`task ${task} failed: ${answer.error.reason}`);
      return answer.response;
    }
    await new Promise((resolve) => setTimeout(resolve, pollMilliseconds));
  }
}
