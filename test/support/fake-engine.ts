import { EngineError, type EngineReply, type EngineRequest, type SearchEngine } from '@sparrow-search/engine';

/** What a fake engine was asked. */
export interface Asked extends EngineRequest {
  readonly body: string | undefined;
}

/**
 * An engine that remembers its requests and answers as told. It is for tests of the HTTP layer's own work (routing, errors,
 * keys, media types); everything else is tested with the real one.
 */
export class FakeEngine implements SearchEngine {
  readonly asked: Asked[] = [];
  closed = false;
  reply: EngineReply = { status: 200, body: bytes('{"acknowledged":true}') };
  failure: Error | undefined;

  async execute(request: EngineRequest, body?: Uint8Array): Promise<EngineReply> {
    this.asked.push({ ...request, body: body === undefined ? undefined : Buffer.from(body).toString() });
    if (this.failure !== undefined) throw this.failure;
    return Promise.resolve(this.reply);
  }

  close(): Promise<void> {
    this.closed = true;
    return Promise.resolve();
  }

  /** The last request. */
  get last(): Asked | undefined {
    return this.asked.at(-1);
  }

  answer(status: number, body: string, text = false): void {
    this.reply = { status, body: bytes(body), text };
  }

  fail(status: number, body: object): void {
    this.failure = new EngineError(status, bytes(JSON.stringify(body)));
  }
}

function bytes(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}
