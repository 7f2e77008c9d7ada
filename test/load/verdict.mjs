// What may not happen under load.

/** Longest that the p99 of what is admitted may be, as a multiple of that of a load which the server carries. */
const TIMES = 3;

/** How much larger the process may be under the greatest load than under one that it carries. */
const GROWTH = 1.5;

/** Longest that the server may take to say that it is well, in milliseconds. */
const HEALTH_MS = 1000;

/** Sentences about what went wrong. */
export function problems(rows) {
  const found = [];
  for (const row of rows) {
    if (row.failed + row.cut > 0) found.push(`${row.clients} clients: ${row.failed} failed, ${row.cut} were cut off`);
    if (row.unwell > 0) found.push(`${row.clients} clients: the server was not well ${row.unwell} times`);
    if (row.healthP99 > HEALTH_MS) found.push(`${row.clients} clients: health took ${row.healthP99.toFixed(0)} ms`);
  }
  const last = rows.at(-1);
  // What the server carries is what it answers most of in a second.
  const carried = rows.slice(0, -1).sort((a, b) => b.perSecond - a.perSecond)[0];
  if (last !== undefined && carried !== undefined) {
    if (last.p99 > TIMES * carried.p99) {
      found.push(
        `the p99 of ${last.clients} clients is ${last.p99.toFixed(0)} ms, over ${TIMES} times the ${carried.p99.toFixed(0)} ms of ${carried.clients}`,
      );
    }
    if (last.peakBytes > GROWTH * carried.peakBytes) {
      found.push(`the process grew from ${carried.peakBytes} to ${last.peakBytes} bytes`);
    }
  }
  return found;
}
