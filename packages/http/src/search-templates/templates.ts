import { HttpError } from '@sparrow-search/endpoints';
import { Turns, unterminated } from '@sparrow-search/engine';

import { carryOutInEngine } from '../handlers/engine.js';
import { FairQueue } from '../exchange/fair-queue.js';
import type { Answer } from '../exchange/respond.js';
import { type Call, endpointOf, senderOf } from '../middleware/call.js';
import { invalid, isObject } from '../security/request-body.js';
import { Budget, compile, fillIn, type Template } from './mustache.js';
import { missingScript, sourceText, storedScripts } from './scripts.js';
import { type Members, objectMember, readMembers, switchMember, textMember, toJson } from './values.js';

/** Stored scripts, by their ids. */
type Scripts = Awaited<ReturnType<typeof storedScripts>>;

const KNOWN = ['id', 'source', 'params', 'explain', 'profile'];

/** Requests whose templates are filled in on the event loop. A request takes milliseconds at most, and so many may wait. */
const queue = new FairQueue({
  what: 'requests with search templates',
  advice: 'send it later',
  ofCaller: 1000,
  together: 4000,
});

/** Does what fills in templates when it is its turn among callers. */
function inTurn<T>(call: Call, fill: () => T | Promise<T>): Promise<T> {
  return queue.run(senderOf(call), async () => fill());
}

/** Fills in a search template, and searches. */
export async function searchTemplate(call: Call): Promise<Answer> {
  const scripts = await storedScripts(call);
  call.body = await inTurn(call, () => Buffer.from(searchOf(call, call.body, scripts, new Budget())));
  return searched(call, 'search');
}

/** Fills in a search template, and shows what comes of it. */
export async function renderTemplate(call: Call): Promise<Answer> {
  const scripts = await storedScripts(call);
  const search = await inTurn(call, () => searchOf(call, call.body, scripts, new Budget()));
  return { status: 200, body: `{"template_output":${search}}` };
}

/** Fills in several search templates, and searches. As at `_msearch`, a malformed one fails the request. */
export async function multiSearchTemplate(call: Call): Promise<Answer> {
  const { body } = call;
  if (body === undefined) throw new HttpError('parse', 'request body is required');
  const scripts = await storedScripts(call);
  call.body = await inTurn(call, () => searchesOf(call, body, scripts));
  return searched(call, 'msearch');
}

async function searchesOf(call: Call, body: Uint8Array, scripts: Scripts): Promise<Buffer> {
  const lines = new TextDecoder().decode(body).split('\n');
  if (lines.pop() !== '') throw new HttpError('illegal_argument', unterminated('msearch', body));
  const [budget, compiled] = [new Budget(), new Map<string, Template>()];
  const filled: string[] = [];
  const turns = new Turns();
  for (let at = 0; at < lines.length; at += 2) {
    if (turns.isOver) await turns.next();
    const [header = '', template = ''] = lines.slice(at, at + 2);
    if (header.trim() === '' && template.trim() === '') continue;
    // In valid JSON a line ends only where a space may be.
    const search = searchOf(call, Buffer.from(template), scripts, budget, compiled).replaceAll(/[\r\n]/g, ' ');
    filled.push(header, search);
  }
  return Buffer.from(filled.map((line) => `${line}\n`).join(''));
}

/** Carries out what was filled in as if it had been sent so: with the same checks of the indices that it names. */
function searched(call: Call, op: 'search' | 'msearch'): Promise<Answer> {
  return carryOutInEngine(call, endpointOf(call), op);
}

/** The search that comes of a request for a template, as JSON. `compiled` are the templates that the request has named before. */
function searchOf(
  call: Call,
  body: Uint8Array | undefined,
  scripts: Scripts,
  budget: Budget,
  compiled = new Map<string, Template>(),
): string {
  const idInPath = call.path['id'];
  const request: Members =
    body === undefined && idInPath !== undefined ? new Map() : readMembers(body, KNOWN, 'search_template');
  const id = textMember(request, 'id') ?? idInPath;
  if (id !== (idInPath ?? id)) throw invalid('[id] is not that of the path');
  const source = id === undefined ? ownSource(request) : storedSource(id, request, scripts);
  const params = objectMember(request, 'params') ?? (new Map() as Members);
  const shown = ['explain', 'profile'].filter((name) => switchMember(request, name));
  const template = compiled.get(source) ?? compile(source);
  compiled.set(source, template);
  const text = fillIn(template, params, budget);
  checkSearch(text);
  if (shown.length === 0) return text;
  const search = new Map(readMembers(Buffer.from(text), undefined, 'search_template'));
  for (const name of shown) search.set(name, true);
  return toJson(search);
}

function storedSource(id: string, request: Members, scripts: Scripts): string {
  if ((request.get('source') ?? undefined) !== undefined)
    throw invalid('either [id] or [source] can be given, not both');
  const script = scripts.get(id);
  if (script === undefined) throw missingScript(id);
  return script.source;
}

function ownSource(request: Members): string {
  const source = request.get('source') ?? '';
  if (source === '') throw invalid('template is missing');
  return sourceText(source);
}

/** @throws {HttpError} 400 when a template was filled in to what is no object of JSON */
function checkSearch(text: string): void {
  let search: unknown;
  try {
    search = JSON.parse(text);
  } catch (error) {
    const problem = error instanceof Error ? error.message : String(error);
    throw new HttpError('json', `the search template was filled in to a text that is not JSON: ${problem}`);
  }
  if (!isObject(search)) {
    throw new HttpError('json', 'the search template was filled in to a text that is no JSON object');
  }
}
