// The parts of a page, from one heading to the next, as a reader sees them: what the search of the documentation finds.

/** The sections of a page as it is built; `address` is what follows `/_docs/`. */
export function sectionsOf(address, html) {
  const main = html.slice(html.indexOf('<main'), html.indexOf('</main>'));
  let title = '';
  return main.split(/(?=<h[1-3] )/).flatMap((part) => {
    const [opening, level, anchor, inside] = /^<h([1-3])[^>]* id="([^"]*)"[^>]*>(.*?)<\/h\1>/s.exec(part) ?? [];
    if (opening === undefined) return [];
    const heading = plain(inside);
    if (level === '1') title = heading;
    return [{ address: `${address}#${anchor}`, title, heading, text: plain(part.slice(opening.length)) }];
  });
}

const ENTITIES = { '&lt;': '<', '&gt;': '>', '&quot;': '"', '&#39;': "'", '&amp;': '&' };

function plain(html) {
  const text = html.replaceAll(/<[^>]+>/g, ' ').replaceAll(/&(?:lt|gt|quot|#39|amp);/g, (name) => ENTITIES[name]);
  return text.replaceAll(/\s+/g, ' ').trim();
}
