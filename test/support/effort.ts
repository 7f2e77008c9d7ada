// How much work something is, on a machine that others use too.
import process from 'node:process';

/** Milliseconds of processor time that `work` takes in this process. What other processes take from it does not count. */
export async function effort(work: () => unknown): Promise<number> {
  const before = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}

/**
 * How many times more work a larger size is than a smaller one. The least of three tries counts for each, since a collection of garbage
 * may come with any of them; what takes no time at all counts as a few milliseconds.
 */
export async function growth(work: (size: number) => unknown, small: number, large: number): Promise<number> {
  const least = async (size: number): Promise<number> => {
    let found = Infinity;
    for (let attempt = 0; attempt < 3; attempt += 1) found = Math.min(found, await effort(() => work(size)));
    return found;
  };
  return (await least(large)) / Math.max(await least(small), 5);
}
