import { HttpError } from '@sparrow-search/endpoints';

import { type Answer, json } from '../exchange/respond.js';
import { type Call, serving } from '../middleware/call.js';
import { checkNames } from '../security/request-body.js';
import { compile } from './mustache.js';
import type { StoredScript } from './script-store.js';
import { type Members, type Value, isMembers, objectMember, readMembers, textMember, toJson } from './values.js';

const LANGUAGE = 'mustache';

/** The type of what a template is filled in to, as Elasticsearch shows it. */
const JSON_CONTENT = 'application/json;charset=utf-8';

/** Longest id, in characters. */
const MOST_ID = 512;

/** Keeps a search template by its id, in place of the one that was there. */
export async function putScript(call: Call): Promise<Answer> {
  const id = call.path['id'] ?? '';
  checkContext(call.path['context'] ?? call.query['context']);
  if (id.includes('#')) throw new HttpError('illegal_argument', `[id] cannot contain '#' for stored script`);
  if (id.length > MOST_ID) {
    throw new HttpError('illegal_argument', `the id of a stored script has at most [${String(MOST_ID)}] characters`);
  }
  const script = objectMember(readMembers(call.body, ['script'], 'stored script source'), 'script');
  if (script === undefined) throw new HttpError('illegal_argument', 'must specify [script] for stored script');
  checkNames(script.keys(), ['lang', 'source', 'options'], 'stored script source');
  checkLanguage(textMember(script, 'lang'));
  const source = script.get('source') ?? '';
  if (source === '') throw new HttpError('illegal_argument', 'must specify source for stored script');
  const text = sourceText(source);
  // What cannot be read is refused now, not at the first search.
  compile(text);
  await serving(call).scripts.put({ id, source: text, isObject: isMembers(source) || hasOptions(script) });
  return json(200, { acknowledged: true });
}

/** Shows a search template. */
export async function getScript(call: Call): Promise<Answer> {
  const id = call.path['id'] ?? '';
  const script = (await storedScripts(call)).get(id);
  if (script === undefined) return json(404, { _id: id, found: false });
  const options = script.isObject ? { options: { content_type: JSON_CONTENT } } : {};
  return json(200, { _id: id, found: true, script: { lang: LANGUAGE, source: script.source, ...options } });
}

/** Deletes a search template. */
export async function deleteScript(call: Call): Promise<Answer> {
  await serving(call).scripts.delete(call.path['id'] ?? '');
  return json(200, { acknowledged: true });
}

/** The stored scripts as they are when a request asks for them. */
export function storedScripts(call: Call): Promise<ReadonlyMap<string, StoredScript>> {
  return serving(call).scripts.current();
}

/** The refusal of a search by a template that is not there. */
export function missingScript(id: string): HttpError {
  return new HttpError('not_found', `unable to find script [${id}] in cluster state`);
}

/** The text of a template that came as one, or as the object that it is to become. */
export function sourceText(source: Value): string {
  if (typeof source === 'string') return source;
  if (isMembers(source)) return toJson(source);
  throw new HttpError('json', '[source] must be a text or an object');
}

function checkContext(context: string | undefined): void {
  if (context === undefined || context === 'template') return;
  throw new HttpError('illegal_argument', `mustache engine does not know how to handle context [${context}]`);
}

function checkLanguage(language: string | undefined): void {
  if (language === LANGUAGE) return;
  throw new HttpError(
    'illegal_argument',
    language === undefined
      ? 'must specify lang for stored script'
      : `scripts of the language [${language}] cannot be stored, only search templates of [${LANGUAGE}]`,
  );
}

/** Whether the script says that it becomes JSON, as all templates do here. */
function hasOptions(script: Members): boolean {
  const options = objectMember(script, 'options');
  if (options === undefined || options.size === 0) return false;
  const type = textMember(options, 'content_type');
  if (options.size > 1 || type === undefined || !/^application\/json\s*(;|$)/i.test(type)) {
    throw new HttpError('illegal_argument', '[options] can only have a [content_type] of [application/json]');
  }
  return true;
}
