// The specification of the REST interface: which HTTP request `indices.create: { index: x, body: … }` is.
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

import { stringify } from './yaml-values.mjs';

/** The arguments of a call cannot be a request: a client would refuse them. */
export class ParameterError extends Error {}

/** Reads the JSON files of a folder: name of the API → its definition. */
export function loadApi(folder) {
  const api = new Map();
  for (const file of readdirSync(folder).filter((name) => name.endsWith('.json') && name !== '_common.json')) {
    for (const [name, definition] of Object.entries(JSON.parse(readFileSync(join(folder, file), 'utf8')))) {
      api.set(name, definition);
    }
  }
  const common = JSON.parse(readFileSync(join(folder, '_common.json'), 'utf8'));
  return { api, common: new Set(Object.keys(common.params)) };
}

/**
 * The request of a call.
 *
 * @param {ReturnType<typeof loadApi>} spec
 * @param {string} name `indices.create`
 * @param {Record<string, unknown>} args path parts, query parameters and `body`
 * @returns {{ method: string, path: string, body?: string, contentType?: string }}
 */
export function requestOf({ api, common }, name, { body, ...args }) {
  const definition = api.get(name);
  if (definition === undefined) throw new ParameterError(`there is no API ${name}`);
  const chosen = choosePath(definition, args, name);
  const parts = new Set(Object.keys(chosen.parts ?? {}));
  const query = new URLSearchParams();
  for (const [key, value] of Object.entries(args)) {
    if (parts.has(key)) continue;
    if (!(key in (definition.params ?? {})) && !common.has(key)) throw new ParameterError(`[${name}] has no ${key}`);
    query.append(key, listOf(value));
  }
  if (body === undefined && definition.body?.required === true) throw new ParameterError(`[${name}] needs a body`);
  const path = chosen.path.replace(/\{(\w+)\}/g, (_, part) =>
    encodeURIComponent(listOf(args[part])).replaceAll('%2C', ','),
  );
  const text = query.size > 0 ? `${path}?${query}` : path;
  const method =
    body !== undefined && chosen.methods[0] === 'GET' && chosen.methods.includes('POST') ? 'POST' : chosen.methods[0];
  return { method, path: text, ...bodyOf(body, definition.body?.serialize === 'bulk') };
}

/** Of the paths whose parts are all given, the one that uses most of them. */
function choosePath(definition, args, name) {
  const given = (path) => Object.keys(path.parts ?? {});
  const usable = definition.url.paths.filter((path) => given(path).every((part) => (args[part] ?? '') !== ''));
  if (usable.length === 0) throw new ParameterError(`[${name}] lacks a required part of its path`);
  const rank = (path) => given(path).length * 2 - (path.deprecated === undefined ? 0 : 1);
  const known = new Set(definition.url.paths.flatMap(given));
  const best = usable.reduce((left, right) => (rank(right) > rank(left) ? right : left));
  const unused = Object.keys(args).filter(
    (key) => known.has(key) && !given(best).includes(key) && !(key in (definition.params ?? {})),
  );
  if (unused.length > 0) throw new ParameterError(`[${name}] has no path with ${unused.join()}`);
  return best;
}

const listOf = (value) => (Array.isArray(value) ? value.map(listOf).join(',') : String(value ?? ''));

function bodyOf(body, lines) {
  if (body === undefined || body === null) return {};
  if (Array.isArray(body) || (lines && typeof body === 'string')) {
    const texts = Array.isArray(body)
      ? body.map((line) => (typeof line === 'string' ? line.trim() : stringify(line)))
      : [body];
    return { body: `${texts.join('\n').replace(/\n+$/, '')}\n`, contentType: 'application/x-ndjson' };
  }
  return { body: typeof body === 'string' ? body : stringify(body), contentType: 'application/json' };
}
