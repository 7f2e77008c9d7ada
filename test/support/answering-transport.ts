// A cluster of which a unit test says what it answers.

/** A body, which is answered with 200, an error's status, or both. */
export type Given = object | number | readonly [status: number, body: object];

/** What a transport is asked with and answers: the part of it that tests look at. */
interface Answering<T> {
  readonly json: (asked: T) => Promise<{ status: number; body: unknown }>;
  readonly ask: (asked: T) => Promise<{ status: number; body: Buffer; text: boolean }>;
}

/** A transport that answers what `given` says; what it knows nothing of is missing. */
export function answeringTransport<T>(given: (asked: T) => Given | undefined): Answering<T> {
  const answer = (asked: T): { status: number; body: unknown } => {
    const found = given(asked) ?? 404;
    if (Array.isArray(found)) return { status: found[0] as number, body: found[1] as object };
    const error = { error: { type: 'of_the_cluster', reason: 'not now' } };
    return typeof found === 'number' ? { status: found, body: error } : { status: 200, body: found };
  };
  return {
    json: (asked) => Promise.resolve(answer(asked)),
    ask: (asked) => {
      const { status, body } = answer(asked);
      return Promise.resolve({ status, body: Buffer.from(JSON.stringify(body)), text: false });
    },
  };
}
