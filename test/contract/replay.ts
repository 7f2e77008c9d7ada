import { readFileSync } from 'node:fs';

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

/**
 * Plays a recording against a server, in order. Names that a server makes up (ids of documents, uuids of indices) are
 * learned from the answers, and put in place of the recorded ones from then on.
 */
export class Replay {
  readonly #names = new Map<string, string>();

  constructor(readonly server: RunningServer) {}

  /** Plays one exchange; returns our answer and the recorded one in our names. */
  async play({ request, response }: Exchange): Promise<{ ours: Answer; recorded: Exchange['response'] }> {
    const { method, path, headers = {}, body } = this.#translate(request) as Exchange['request'];
    // A string was sent as it stands: NDJSON, or JSON that is not well formed.
    const payload = body === undefined ? undefined : typeof body === 'string' ? body : JSON.stringify(body);
    const ours = await this.server.request(method, path, payload, {
      headers: { ...(payload === undefined ? {} : { 'content-type': '' }), ...headers },
    });
    this.#learn(response.body, ours.body);
    return { ours, recorded: this.#translate(response) as Exchange['response'] };
  }

  #translate(value: unknown): unknown {
    let text = JSON.stringify(value);
    for (const [recorded, ours] of this.#names) text = text.replaceAll(recorded, ours);
    return JSON.parse(text);
  }

  /** Learns made-up names wherever both answers have the same shape. */
  #learn(recorded: unknown, ours: unknown): void {
    if (typeof recorded === 'string' && typeof ours === 'string') {
      // What a server makes up is 20 or 22 letters of base64.
      if (recorded !== ours && /^[\w-]{20,22}$/.test(recorded) && /^[\w-]{20,22}$/.test(ours)) this.#names.set(recorded, ours);
    } else if (typeof recorded === 'object' && typeof ours === 'object' && recorded !== null && ours !== null) {
      for (const [key, value] of Object.entries(recorded)) this.#learn(value, (ours as Record<string, unknown>)[key]);
    }
  }
}
