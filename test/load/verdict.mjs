// What may not happen under load.

/** Longest that the p99 of what is admitted may be, as a multiple of that of a load which the server carries. */
const TIMES = 3;

/** How much larger the process may be under the greatest load than under one that it carries. */
const GROWTH = 1.5;

/** How much larger the process may be at the end of a load than at its beginning: a share, and bytes. */
const DRIFT = 1.1;
const DRIFT_BYTES = 2 ** 26;

/** Longest that the server may take to say that it is well, in milliseconds. */
const HEALTH_MS = 1000;

/** Sentences about what went wrong. */
export function problems(rows) {
  const found = [];
  for (const row of rows) {
    const { name } = row;
    if (row.failed + row.cut > 0) found.push(`${name}: ${row.failed} failed, ${row.cut} were cut off or not answered`);
    if (row.untold > 0) found.push(`${name}: ${row.untold} were refused without Retry-After`);
    if (row.unwell > 0) found.push(`${name}: the server was not well ${row.unwell} times`);
    if (row.healthP99 > HEALTH_MS) found.push(`${name}: health took ${row.healthP99.toFixed(0)} ms`);
    if (row.ok === 0) found.push(`${name}: nothing was answered`);
  }
  found.push(...ofClients(rows.filter((row) => row.clients !== undefined && row.reindexed === undefined)));
  const beside = rows.find((row) => row.reindexed !== undefined);
  if (beside !== undefined && beside.reindexed === 0) found.push(`${beside.name}: the reindex did nothing meanwhile`);
  found.push(...ofArrivals(rows.filter((row) => row.rate !== undefined)));
  return found;
}

function ofClients(rows) {
  const found = [];
  const last = rows.at(-1);
  // What the server carries is what it answers most of in a second.
  const carried = rows.slice(0, -1).sort((a, b) => b.perSecond - a.perSecond)[0];
  if (last === undefined || carried === undefined) return found;
  // Clients that each wait for their answer before they ask again wait for one another: none is answered sooner on average
  // than the number of them divided by the rate.
  const share = (1000 * last.clients) / last.perSecond;
  if (last.p99 > TIMES * Math.max(carried.p99, share)) {
    found.push(
      `the p99 of ${last.name} is ${last.p99.toFixed(0)} ms, over ${TIMES} times the ${carried.p99.toFixed(0)} ms of ${carried.name} and ` +
        `the ${share.toFixed(0)} ms that so many wait for one another`,
    );
  }
  if (last.peakBytes > GROWTH * carried.peakBytes) {
    found.push(`the process grew from ${carried.peakBytes} to ${last.peakBytes} bytes`);
  }
  return found;
}

/** The first is a load that leaves the server idle for most of the time. */
function ofArrivals([unloaded, ...others]) {
  const found = [];
  for (const row of others) {
    if (row.p99 > TIMES * unloaded.p99) {
      found.push(
        `${row.name}: the p99 is ${row.p99.toFixed(1)} ms, over ${TIMES} times the ${unloaded.p99.toFixed(1)} ms without load`,
      );
    }
    if (row.lastBytes > DRIFT * row.firstBytes + DRIFT_BYTES) {
      found.push(`${row.name}: the process grew from ${row.firstBytes} to ${row.lastBytes} bytes`);
    }
  }
  return found;
}
