import { readFileSync } from 'node:fs';

import { parse as parseYaml } from 'yaml';

import type { Answer, RunningServer } from '../support/server.js';

/** One line of a recording: what was asked of a real server and what it answered. */
export interface Exchange {
  readonly name: string;
  readonly request: {
    readonly method: string;
    readonly path: string;
    readonly headers?: Readonly<Record<string, string>>;
    readonly body?: unknown;
  };
  readonly response: {
    readonly status: number;
    readonly headers: Readonly<Record<string, string>>;
    readonly body: unknown;
  };
}

export function readExchanges(path: URL): readonly Exchange[] {
  return readFileSync(path, 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Exchange);
}

/** Keys whose values a server makes up. */
const MADE_UP = new Set(['_id', 'uuid', 'index_uuid', 'node', '_scroll_id', 'task']);

/** The form of what a server makes up: 20 or 22 letters of base64, a task's number behind them, more for a scroll. */
const MADE_UP_NAME = /^([\w-]{20}|[\w-]{22}(:\d+)?|[\w-]{30,}={0,2})$/;

/**
 * Plays a recording against a server, in order. Names that a server makes up (ids of documents, uuids of indices) are
 * learned from the answers where they first occur, and put in place of the recorded ones from then on.
 */
export class Replay {
  readonly #names: Map<string, string>;

  /** `names` are those known before: of the recording, then ours. */
  constructor(
    readonly server: RunningServer,
    names: Readonly<Record<string, string>> = {},
  ) {
    this.#names = new Map(Object.entries(names));
  }

  /** Plays one exchange; returns our answer and the recorded one in our names. */
  async play({ name, request, response }: Exchange): Promise<{ ours: Answer; recorded: Exchange['response'] }> {
    const { method, path, headers = {}, body } = this.#translate(request) as Exchange['request'];
    const payload = name === 'explosion-put-mapping' ? explosion() : written(body);
    const send = (): Promise<Answer> =>
      this.server.request(method, path, payload, {
        headers: { ...(payload === undefined ? {} : { 'content-type': '' }), ...headers },
      });
    let ours = await send();
    // A task that had ended when it was recorded may need a moment more here.
    for (let again = 0; again < 50 && ended(response.body) && !ended(ours.body); again += 1) {
      await new Promise((resolve) => setTimeout(resolve, 50));
      ours = await send();
    }
    const theirs = { ...response, body: parsed(response.body) };
    const mine = { ...ours, body: parsed(ours.body) };
    this.#learn(theirs.body, mine.body);
    return { ours: mine, recorded: this.#translate(theirs) as Exchange['response'] };
  }

  #translate(value: unknown): unknown {
    let text = JSON.stringify(value);
    for (const [recorded, ours] of this.#names) text = text.replaceAll(recorded, ours);
    return JSON.parse(text);
  }

  /** Learns made-up names wherever both answers have the same shape. What is known already stays: it has to match. */
  #learn(recorded: unknown, ours: unknown): void {
    if (typeof recorded !== 'object' || typeof ours !== 'object' || recorded === null || ours === null) return;
    for (const [key, theirs] of Object.entries(recorded)) {
      const value = (ours as Record<string, unknown>)[key];
      if (MADE_UP.has(key) && isMadeUp(theirs) && isMadeUp(value) && !this.#names.has(theirs)) {
        // The name of a task holds that of its node, which is translated before it.
        this.#names.set(this.#translate(theirs) as string, value);
      } else this.#learn(theirs, value);
    }
  }
}

function ended(body: unknown): boolean {
  return (body as { completed?: unknown } | null)?.completed === true;
}

function isMadeUp(value: unknown): value is string {
  return typeof value === 'string' && MADE_UP_NAME.test(value);
}

/**
 * A body to compare: what YAML says; of a `_cat` table with its heading the rows, each as an object by column. Rows of an
 * index of tasks are left out: an excused exchange made it over there.
 */
function parsed(body: unknown): unknown {
  if (typeof body === 'string' && body.startsWith('---\n')) return parseYaml(body);
  if (typeof body !== 'string' || !/^(health|epoch|ip|index) +[a-z]/.test(body)) return body;
  const [heading = [], ...rows] = body
    .trim()
    .split('\n')
    .map((line) => line.trim().split(/\s+/));
  const own = rows.filter(([first]) => first !== '.tasks');
  // Nobody asked for an order of shards.
  if (heading[1] === 'shard') own.sort(([a = ''], [b = '']) => a.localeCompare(b));
  return own.map((row) => Object.fromEntries(heading.map((column, index) => [column, row[index] ?? ''])));
}

/** A body as it was sent. A string was sent as it stands: NDJSON, or JSON that is not well formed. */
function written(body: unknown): string | undefined {
  return body === undefined || typeof body === 'string' ? body : spaced(body);
}

/** JSON with the blanks of the recorder's Python, as errors name the column. */
function spaced(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(spaced).join(', ')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const members = Object.entries(value).map(([key, member]) => `${JSON.stringify(key)}: ${spaced(member)}`);
  return `{${members.join(', ')}}`;
}

/** The one body that the recording keeps the beginning of. */
function explosion(): string {
  const fields = Array.from({ length: 1001 }, (_, index) => [`f${String(index)}`, { type: 'integer' }] as const);
  return spaced({ mappings: { properties: Object.fromEntries(fields) } });
}
