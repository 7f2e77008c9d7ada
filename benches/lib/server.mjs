// A Sparrow server of a suite's own, filled through the public API.
import process from 'node:process';

import { bulkLines, createClient, findApiKey } from '../../scripts/lib/api-client.mjs';
import { CLI } from '../../scripts/lib/paths.mjs';
import { StepFailed } from '../../scripts/lib/process.mjs';
import { startServer } from '../../scripts/lib/server-process.mjs';

export const MODEL = '.sparse_encoder_model_2';
const BULK = 500;

/** @param {string} data the data directory */
export async function startSparrow(data) {
  const server = await startServer(process.execPath, [CLI], data);
  return { ...server, request: createClient({ url: server.url, apiKey: findApiKey(data) }) };
}

/**
 * Creates an index and fills it.
 *
 * @param {(method: string, path: string, body?: unknown) => Promise<any>} request
 * @param {object[]} documents `{ _id, ...source }`
 * @param {{ mappings: object, settings?: object, pipeline?: string }} options
 * @returns {Promise<number>} seconds until all of it could be searched
 */
export async function fill(request, index, documents, { pipeline, ...body }) {
  await request('PUT', `/${index}`, body);
  const begun = performance.now();
  for (let from = 0; from < documents.length; from += BULK) {
    const lines = bulkLines(documents.slice(from, from + BULK));
    const query = pipeline === undefined ? '' : `?pipeline=${pipeline}`;
    const answer = await request('POST', `/${index}/_bulk${query}`, lines);
    if (answer.errors) throw new StepFailed(`a document of ${index} was refused`);
  }
  await request('POST', `/${index}/_refresh`);
  const seconds = (performance.now() - begun) / 1000;
  const { count } = await request('GET', `/${index}/_count`);
  if (count !== documents.length) throw new StepFailed(`${index} has ${count} documents, not ${documents.length}`);
  return seconds;
}
