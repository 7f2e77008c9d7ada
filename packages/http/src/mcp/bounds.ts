import { HttpError, sizeOfJson } from '@sparrow-search/endpoints';

/** Messages in one request, each of which may be a search. */
const MOST_MESSAGES = 20;

/** Values in one request: more than any of the tools can use, and few enough to be looked at in no time. */
const MOST_VALUES = 20_000;

/** Those that are no arguments of a tool: the library for the protocol looks at each of them several times. */
const MOST_OTHER_VALUES = 1000;

/** Levels of lists and objects: those of the deepest document, and of the message that it comes in. */
const MOST_LEVELS = 150;

/**
 * A message, or several of them in a list, as revisions before 2025-06-18 allow it. What is read of it on the event loop is
 * bounded.
 *
 * @returns undefined for what is no JSON, which the library refuses in the form of the protocol
 * @throws {HttpError} 400 for too many messages, requests for the list of tools, values or levels
 */
export function parseMessage(body: Uint8Array = new Uint8Array(0)): unknown {
  const { values, levels } = sizeOfJson(body);
  if (levels > MOST_LEVELS) throw refused('levels of lists and objects', MOST_LEVELS, 'send fewer');
  if (values > MOST_VALUES) {
    throw refused(`[${String(values)}] values`, MOST_VALUES, 'send fewer documents at once');
  }
  let message: unknown;
  try {
    message = JSON.parse(new TextDecoder().decode(body));
  } catch {
    return undefined;
  }
  const messages: readonly unknown[] = Array.isArray(message) ? message : [message];
  if (messages.length > MOST_MESSAGES) {
    throw refused(`[${String(messages.length)}] messages`, MOST_MESSAGES, 'send each in its own');
  }
  if (messages.filter(asksForTools).length > 1) {
    throw refused('requests for the list of tools', 1, 'it is the same in each answer');
  }
  if (messages.reduce<number>((count, one) => count + valuesBesideArguments(one), 0) > MOST_OTHER_VALUES) {
    throw refused(
      'values that are no arguments of a tool',
      MOST_OTHER_VALUES,
      'leave out what the server does not need',
    );
  }
  return message;
}

/** Whether a message asks which tools there are. */
export function asksForTools(message: unknown): message is Readonly<Record<string, unknown>> {
  return isObject(message) && message['method'] === 'tools/list';
}

function valuesBesideArguments(message: unknown): number {
  if (!isObject(message) || !isObject(message['params'])) return valuesOf(message);
  return valuesOf({ ...message, params: { ...message['params'], arguments: null } });
}

function valuesOf(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 1;
  return Object.values(value).reduce<number>((count, one) => count + valuesOf(one), 1);
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function refused(what: string, most: number, advice: string): HttpError {
  return new HttpError('illegal_argument', `${what} in one request are more than [${String(most)}]; ${advice}`);
}
