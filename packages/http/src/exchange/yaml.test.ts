// Bodies in YAML, with the thread that reads them: it is started from what was compiled.
import { describe, expect, it } from 'vitest';

import { effort } from '../../../../test/support/effort.js';
import { YamlThread, yamlToJson } from '../../dist/exchange/yaml.js';

/** All that a test sends is there before the first of it is read: it is sent in one turn of the event loop. */
const LONG = Buffer.from(`n:\n${'  - 1\n'.repeat(500)}`);

/** Clients, each of which can leave. */
class Clients {
  readonly #gone: (() => void)[][] = [];

  constructor(private readonly read: typeof yamlToJson = yamlToJson) {}

  /** What becomes of a body, in time. */
  send(caller: string, body: Uint8Array = LONG): Promise<string> {
    const told: (() => void)[] = [];
    this.#gone.push(told);
    const onGone = (callback: () => void): (() => void) => {
      told.push(callback);
      return () => undefined;
    };
    return this.read(body, { caller, onGone }).then(
      (json) => Buffer.from(json).toString(),
      (error: unknown) => String(error),
    );
  }

  /** As {@link send}, for so many bodies. */
  sendAll(caller: string, count: number, body?: Uint8Array): Promise<string>[] {
    return Array.from({ length: count }, () => this.send(caller, body));
  }

  leave(first: number, last: number): void {
    for (const gone of this.#gone.slice(first, last).flat()) gone();
  }
}

const small = Buffer.from('a: 1');

describe('bodies in YAML', () => {
  it.each([
    ['lists in lists', '- '.repeat(14_253)],
    ['keys of keys', '? '.repeat(14_253)],
    ['brackets', '['.repeat(20_000)],
    ['braces', '{a: '.repeat(5000)],
    ['indentation', Array.from({ length: 400 }, (_, at) => `${' '.repeat(at)}a:`).join('\n')],
  ])('are read to 100 levels, and no deeper: %s', async (_, text) => {
    const clients = new Clients();
    for (let turn = 0; turn < 3; turn += 1) {
      expect(await clients.send('deep', Buffer.from(text))).toContain('nested deeper than [100] levels');
    }
    const deep = `${'['.repeat(99)}1${']'.repeat(99)}`;
    expect(await clients.send('deep', Buffer.from(deep))).toBe(deep);
    expect(await clients.send('deep', small)).toBe('{"a":1}');
  });

  it('are read in turns of those who send them', async () => {
    const clients = new Clients();
    const order: string[] = [];
    const note = (name: string, bodies: Promise<string>[]): Promise<void>[] =>
      bodies.map((body) => body.then(() => void order.push(name)));
    await Promise.all([
      ...note('many', clients.sendAll('many', 8)),
      ...note('few', clients.sendAll('few', 2)),
      ...note('one', clients.sendAll('one', 1)),
    ]);
    expect(order.slice(0, 6)).toEqual(['many', 'few', 'one', 'many', 'few', 'many']);
    expect(order).toHaveLength(11);
  });

  it('are refused for now where too many of one caller wait, and those of others are not', async () => {
    const clients = new Clients();
    const bodies = clients.sendAll('many', 9);
    const other = clients.send('other', small);
    expect(await bodies[8]).toContain(
      '[8] bodies in YAML of this caller wait for their turn: send it later, or as JSON',
    );
    expect(await other).toBe('{"a":1}');
    for (const body of await Promise.all(bodies.slice(0, 8))) expect(body).toContain('{"n":[1,');
  });

  it('are refused for now where too many of all callers wait', async () => {
    const clients = new Clients();
    const bodies = Array.from({ length: 101 }, (_, number) => clients.send(`caller ${String(number >> 3)}`, small));
    expect(await bodies[100]).toContain('rejected execution: [100] bodies in YAML wait for their turn');
    expect(new Set(await Promise.all(bodies.slice(0, 100)))).toEqual(new Set(['{"a":1}']));
  });

  it('are not read for clients that have left', async () => {
    // A thread of their own: that of the others may still let requests have their turns, so that the first body is not begun.
    const thread = new YamlThread();
    const clients = new Clients(async (body, sender) => {
      const reply = await thread.read(body, sender);
      return 'json' in reply ? reply.json : Buffer.from(reply.problem);
    });
    const bodies = clients.sendAll('many', 8);
    clients.leave(0, 8);
    // The first one is being read, and keeps its place; the others left theirs.
    const more = clients.sendAll('many', 8, small);
    expect(new Set(await Promise.all(bodies))).toEqual(
      new Set(['HttpError: the client went away before it was the turn of its request']),
    );
    const [first, ...others] = await Promise.all(more);
    expect([...others.slice(0, 6), first]).toEqual(Array(7).fill('{"a":1}'));
    expect(others[6]).toContain('[8] bodies in YAML of this caller');
  });

  it('are read beside long ones where they are short', async () => {
    const clients = new Clients();
    const order: string[] = [];
    // The thread of short ones is there.
    await clients.send('other', small);
    const body = Buffer.from(`n:\n${'  - 1\n'.repeat(8_000)}`);
    const long = clients.send('many', body).then(() => void order.push('long'));
    await clients.send('other', small).then(() => void order.push('short'));
    await long;
    expect(order).toEqual(['short', 'long']);
  });

  it('are refused where aliases stand for more than is read', async () => {
    const text = `a: &a ${'x'.repeat(100_000)}\nb: [${Array(90).fill('*a').join(', ')}]\n`;
    expect(await new Clients().send('one', Buffer.from(text))).toContain('stands for more than [8388608] characters');
  });

  it('are refused where they are no UTF-8', async () => {
    expect(await new Clients().send('one', Buffer.from([0xff]))).toContain('[1:1] Invalid UTF-8');
  });

  it('count every list and object that aliases stand for, however empty', async () => {
    const text = `a: &a [${Array(30_000).fill('[],{}').join()}]\nb: [${Array(50).fill('*a').join()}]\n`;
    expect(await new Clients().send('one', Buffer.from(text))).toContain('stands for more than [8388608] characters');
  });

  it('have keys that are different, which is found out without comparing each with all', async () => {
    const clients = new Clients();
    for (const text of ['a: 1\nb: 2\na: 3', '{a: 1, a: 2}', 'x: [{k: 1, "k": 2}]']) {
      expect(await clients.send('one', Buffer.from(text))).toContain('Map keys must be unique');
    }
    const map = (keys: number): Buffer =>
      Buffer.from(Array.from({ length: keys }, (_, at) => `${String(at)}:`).join('\n'));
    await clients.send('one', map(20_000));
    const [few, many] = [map(10_000), map(40_000)];
    const once = await effort(() => clients.send('one', few));
    // Sixteen times if all were compared.
    expect(await effort(() => clients.send('one', many))).toBeLessThan(10 * once);
  });

  it('have so many values', async () => {
    const text = `[${Array(200_001).fill('1').join()}]`;
    expect(await new Clients().send('one', Buffer.from(text))).toContain('more than [200000] values');
  });

  const slow = Buffer.from(`a: &a [${'[1],'.repeat(15_000)}]\nb: [${Array(50).fill('*a').join()}]\n`);
  const stays = { caller: 'one', onGone: () => () => undefined };

  it('take the time that a processor had for them, however long they waited for it', async () => {
    expect(await new YamlThread(1, () => 0).read(slow, stays)).toHaveProperty('json');
    expect(await new YamlThread(1, () => undefined).read(slow, stays)).toEqual({
      problem: expect.stringContaining('takes too long') as string,
    });
  });

  it.runIf(process.platform === 'linux')('that take too long are given up', async () => {
    const problem = expect.stringContaining('takes too long') as string;
    expect(await new YamlThread(1).read(slow, stays)).toEqual({ problem });
  });

  it('are given up soon after their clients have left', async () => {
    const thread = new YamlThread();
    const much = Buffer.from(`[${'&a [1], *a, '.repeat(5_000)}]`);
    const whole = await effort(() => thread.read(much, stays));
    const told: (() => void)[] = [];
    const onGone = (callback: () => void): (() => void) => {
      told.push(callback);
      return () => undefined;
    };
    const part = await effort(async () => {
      const left = thread.read(much, { caller: 'one', onGone });
      for (const leave of told) leave();
      await expect(left).rejects.toMatchObject({ code: 'client_closed' });
      expect(await thread.read(small, stays)).toHaveProperty('json');
    });
    expect(part).toBeLessThan(whole / 2);
  });
});
