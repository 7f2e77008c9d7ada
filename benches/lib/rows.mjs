// One row of a benchmark: what was compared, what came out, and whether it is what was promised.

/**
 * @typedef {object} Row
 * @property {string} what
 * @property {string | null} against
 * @property {string} unit of `sparrow` and `peer`
 * @property {number | null} sparrow
 * @property {number | null} peer
 * @property {number | null} ratio sparrow / peer, unless the row says otherwise
 * @property {{ at_most?: number, at_least?: number } | null} target for the ratio, or for `sparrow` where there is no peer
 * @property {boolean | null} met null when there is no target or nothing was measured
 * @property {string} checked which answers were compared, and with what
 * @property {object} detail
 * @property {string} [skipped] why nothing was measured
 */

/** Fills in what a suite leaves out of a row. @returns {Row} */
export function completeRow(row) {
  const {
    what,
    against = null,
    unit = '',
    sparrow = null,
    peer = null,
    target = null,
    checked = '',
    detail = {},
  } = row;
  if (typeof what !== 'string' || what === '') throw new TypeError('a row without a name');
  for (const value of [sparrow, peer, row.ratio ?? null]) {
    if (value !== null && !Number.isFinite(value)) throw new TypeError(`[${what}] is measured as ${value}`);
  }
  const ratio = row.ratio ?? (sparrow !== null && peer !== null ? sparrow / peer : null);
  const complete = { what, against, unit, sparrow, peer, ratio, target, met: null, checked, detail };
  if (row.skipped !== undefined) return { ...complete, skipped: row.skipped };
  // A suite may judge a row itself, where one number does not tell.
  return { ...complete, met: row.met ?? meets(ratio ?? sparrow, target) };
}

/** Whether a value is what the target asks for; null when one of them is missing. */
export function meets(value, target) {
  if (target === null || value === null) return null;
  const { at_most: most = Infinity, at_least: least = -Infinity } = target;
  return value <= most && value >= least;
}

/** A number with three significant digits, or all of its integer digits. */
export function figure(value) {
  if (value === null || value === undefined) return '-';
  const magnitude = Math.abs(value);
  if (magnitude >= 1000) return Math.round(value).toLocaleString('en-US');
  return magnitude === 0 ? '0' : value.toFixed(Math.max(0, 2 - Math.floor(Math.log10(magnitude))));
}

/** A target as text, with three significant digits unless it is a whole number: `≤ 0.05`. */
export function targetText(target) {
  if (target === null) return '';
  const { at_most: most, at_least: least } = target;
  const shown = (value) => String(Number.isInteger(value) ? value : Number(value.toPrecision(3)));
  return [most === undefined ? '' : `≤ ${shown(most)}`, least === undefined ? '' : `≥ ${shown(least)}`]
    .filter((text) => text !== '')
    .join(', ');
}

/** The cells of a table for the terminal, heading first. @param {Row[]} rows */
export function cells(rows) {
  const verdict = (row) => {
    if (row.skipped !== undefined) return 'skipped';
    return row.met === null ? '' : row.met ? 'met' : 'NOT REACHED';
  };
  return [
    ['', 'against', 'sparrow', 'peer', 'unit', 'ratio', 'target', ''],
    ...rows.map((row) => [
      row.what,
      row.against ?? '',
      figure(row.sparrow),
      figure(row.peer),
      row.unit,
      figure(row.ratio),
      targetText(row.target),
      verdict(row),
    ]),
  ];
}
