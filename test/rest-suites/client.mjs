// Sends the requests of a suite as they are: a GET may have a body.
import { Agent, request as httpRequest } from 'node:http';

import { parse as parseYamlText } from 'yaml';

/**
 * @param {{ url: string, apiKey: string }} server
 * @returns a function that resolves with `{ status, text, body, headers }`, whatever the status is
 */
export function createSender({ url, apiKey }) {
  const agent = new Agent({ keepAlive: true });
  return ({ method, path, body, contentType, headers = {} }) =>
    new Promise((resolve, reject) => {
      const own = {
        authorization: `ApiKey ${apiKey}`,
        ...(body === undefined
          ? {}
          : { 'content-type': contentType, 'content-length': String(Buffer.byteLength(body)) }),
      };
      const asGiven = Object.fromEntries(
        Object.entries(headers).map(([key, value]) => [key.toLowerCase(), String(value)]),
      );
      const request = httpRequest(
        url + path,
        { method, agent, headers: { ...own, ...asGiven }, timeout: 60_000 },
        (response) => {
          const chunks = [];
          response.on('data', (chunk) => chunks.push(chunk));
          response.on('error', reject);
          response.on('end', () => {
            const text = Buffer.concat(chunks).toString();
            const { statusCode: status = 0, headers: answered } = response;
            resolve({ status, text, headers: answered, body: read(text, answered['content-type'] ?? '') });
          });
        },
      );
      request.on('timeout', () => request.destroy(new Error(`no answer to ${method} ${path} within a minute`)));
      request.on('error', reject);
      request.end(body);
    });
}

function read(text, type) {
  if (type.includes('yaml')) return parseYamlText(text.replace(/^---\n/, ''));
  if (!type.includes('json')) return text;
  return text === '' ? '' : JSON.parse(text);
}
