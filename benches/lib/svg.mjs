// Charts as SVG, without a style sheet and without a script, so that they look the same wherever they are shown.

const FONT = 'system-ui, sans-serif';
const INK = '#251f1a';
const MUTED = '#665c53';
const GRID = '#e7dfd4';
/** The first is Sparrow's. */
export const COLOURS = ['#a34a12', '#8a8078', '#1a66a8', '#16704f', '#6a48b5'];

const escape = (text) => String(text).replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
const round = (number) => Math.round(number * 10) / 10;

function text(x, y, content, { size = 13, colour = INK, anchor = 'start', weight = 400 } = {}) {
  return `<text x="${round(x)}" y="${round(y)}" font-family="${FONT}" font-size="${size}" fill="${colour}" text-anchor="${anchor}" font-weight="${weight}">${escape(content)}</text>`;
}

function picture(width, height, title, parts) {
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img">`,
    `<title>${escape(title)}</title>`,
    `<rect width="${width}" height="${height}" rx="10" fill="#ffffff"/>`,
    ...parts,
    '</svg>',
    '',
  ].join('\n');
}

/** Three significant digits, thousands with commas. */
export function figure(value) {
  if (value >= 1000) return Math.round(value).toLocaleString('en-US');
  return String(Number(value.toPrecision(3)));
}

/**
 * Panels of horizontal bars, each with a scale of its own from zero.
 * @param {string} title
 * @param {{title: string, note: string, bars: {name: string, value: number, unit: string, colour: number}[]}[]} panels
 */
export function bars(title, panels) {
  const names = panels.flatMap(({ bars: each }) => each.map(({ name }) => name.length));
  // A letter is some seven pixels wide.
  const left = Math.max(250, 7 * Math.max(...names) + 20);
  const [width, right] = [510 + left, 110];
  const parts = [];
  let y = 20;
  for (const panel of panels) {
    parts.push(
      text(20, y + 12, panel.title, { weight: 600, size: 14 }),
      text(20, y + 30, panel.note, { colour: MUTED, size: 12 }),
    );
    y += 42;
    const most = Math.max(...panel.bars.map(({ value }) => value));
    for (const { name, value, unit, colour } of panel.bars) {
      const length = Math.max(1, (value / most) * (width - left - right));
      parts.push(
        text(left - 10, y + 14, name, { anchor: 'end' }),
        `<rect x="${left}" y="${y}" width="${round(length)}" height="20" rx="3" fill="${COLOURS[colour]}"/>`,
        text(left + length + 8, y + 14, `${figure(value)} ${unit}`.trim()),
      );
      y += 27;
    }
    y += 16;
  }
  return picture(width, y, title, parts);
}

/**
 * Lines over a shared axis.
 * @param {string} title
 * @param {{x: string, y: string, log: boolean, series: {name: string, colour: number, points: [number, number][]}[]}} what
 */
export function lines(title, { x, y, log, series }) {
  const [width, height, left, right, top, bottom] = [760, 380, 70, 190, 50, 50];
  const all = series.flatMap(({ points }) => points);
  const axis = (values, from, to) => {
    const [least, most] = [log ? Math.min(...values) : 0, Math.max(...values)];
    const scale = log ? Math.log10 : (value) => value;
    const [low, high] = [log ? Math.floor(scale(least)) : 0, log ? Math.ceil(scale(most) - 1e-9) : most * 1.1];
    return {
      at: (value) => from + ((scale(value) - low) / (high - low)) * (to - from),
      ticks: log ? Array.from({ length: high - low + 1 }, (_, n) => 10 ** (low + n)) : ticksOf(high),
    };
  };
  const across = axis(
    all.map(([it]) => it),
    left,
    width - right,
  );
  const up = axis(
    all.map(([, it]) => it),
    height - bottom,
    top,
  );
  const parts = [text(20, 28, title, { weight: 600, size: 14 })];
  for (const tick of up.ticks) {
    parts.push(
      `<line x1="${left}" x2="${width - right}" y1="${round(up.at(tick))}" y2="${round(up.at(tick))}" stroke="${GRID}"/>`,
      text(left - 8, up.at(tick) + 4, figure(tick), { anchor: 'end', colour: MUTED, size: 12 }),
    );
  }
  for (const tick of across.ticks) {
    parts.push(
      text(across.at(tick), height - bottom + 20, figure(tick), { anchor: 'middle', colour: MUTED, size: 12 }),
    );
  }
  parts.push(
    text((left + width - right) / 2, height - 10, x, { anchor: 'middle', colour: MUTED, size: 12 }),
    text(left, top - 12, y, { colour: MUTED, size: 12 }),
  );
  const ends = series.map(({ points }) => up.at(points.at(-1)[1]));
  const places = apart(ends, 18);
  series.forEach(({ name, colour, points }, at) => {
    const path = points.map(([px, py]) => `${round(across.at(px))},${round(up.at(py))}`).join(' ');
    parts.push(`<polyline points="${path}" fill="none" stroke="${COLOURS[colour]}" stroke-width="2.5"/>`);
    if (points.length < 10) {
      for (const [px, py] of points) {
        parts.push(`<circle cx="${round(across.at(px))}" cy="${round(up.at(py))}" r="3.5" fill="${COLOURS[colour]}"/>`);
      }
    }
    parts.push(text(width - right + 10, places[at] + 4, name, { colour: COLOURS[colour], size: 12, weight: 600 }));
  });
  return picture(width, height, title, parts);
}

/** Four to six round marks from zero up to a value. */
function ticksOf(most) {
  const step = [1, 2, 5, 10].map((it) => it * 10 ** Math.floor(Math.log10(most / 4))).find((it) => most / it <= 6);
  return Array.from({ length: Math.floor(most / step) + 1 }, (_, n) => n * step);
}

/** Moves names that would lie upon each other apart. */
function apart(ends, distance) {
  const order = ends.map((_, at) => at).sort((one, other) => ends[one] - ends[other]);
  const places = [...ends];
  order.forEach((at, n) => {
    const before = order[n - 1];
    if (before !== undefined) places[at] = Math.max(places[at], places[before] + distance);
  });
  return places;
}
