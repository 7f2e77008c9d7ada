/** Does a piece of work for each item, some at once; what they give comes in their order. None is begun after one that failed. */
export async function someAtOnce<I, T>(
  items: readonly I[],
  atOnce: number,
  work: (item: I) => Promise<T>,
): Promise<readonly T[]> {
  const done: T[] = [];
  const left = items.entries();
  let hasFailed = false;
  const worker = async (): Promise<void> => {
    for (const [at, item] of left) {
      if (hasFailed) return;
      try {
        done[at] = await work(item);
      } catch (error) {
        hasFailed = true;
        throw error;
      }
    }
  };
  await Promise.all(Array.from({ length: Math.min(items.length, atOnce) }, worker));
  return done;
}
