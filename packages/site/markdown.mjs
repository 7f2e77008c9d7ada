// Markdown as this site needs it: anchors as on GitHub, links between pages, the same example in several languages behind tabs.
import { linkFrom, uniqueAnchors } from './addresses.mjs';
import { translated } from './languages.mjs';

const LANGUAGES = new Map([
  ['sh', 'curl'],
  ['js', 'JavaScript'],
  ['python', 'Python'],
]);

/** Changes an instance of markdown-it. `docs/`-relative path of the page: `env.page.inputPath` behind `docs/`. */
export function extend(markdown) {
  markdown.core.ruler.push('sparrow', (state) => {
    const page = state.env.page.inputPath.replace(/^.*?docs\//, '');
    anchors(state.tokens);
    links(state.tokens, page);
    alignment(state.tokens);
    tabs(state);
  });
  markdown.renderer.rules.fence = (tokens, at) => fence(tokens[at], markdown.utils.escapeHtml);
  // Wide tables scroll by themselves.
  markdown.renderer.rules.table_open = () => '<div class="wide" tabindex="0"><table>';
  markdown.renderer.rules.table_close = () => '</table></div>';
}

const textOf = (token) =>
  token.children
    .filter(({ type }) => type === 'text' || type === 'code_inline')
    .map(({ content }) => content)
    .join('');

function anchors(tokens) {
  const anchorFor = uniqueAnchors();
  tokens.forEach((token, at) => {
    if (token.type === 'heading_open') token.attrSet('id', anchorFor(textOf(tokens[at + 1])));
  });
}

function links(tokens, page) {
  for (const { children } of tokens) {
    for (const token of children ?? []) {
      for (const name of ['href', 'src']) {
        const value = token.attrGet(name);
        if (value !== null) token.attrSet(name, linkFrom(page, value));
      }
      if (token.type === 'image') token.attrSet('loading', 'lazy');
    }
  }
}

/** Figures stand to the right by a class: the page's policy allows no style in an element. */
function alignment(tokens) {
  for (const token of tokens) {
    const at = token.attrIndex('style');
    if (at === -1) continue;
    const isRight = token.attrs[at][1] === 'text-align:right';
    token.attrs.splice(at, 1);
    if (isRight) token.attrJoin('class', 'figure');
  }
}

/** Puts blocks that follow each other directly, in several languages, behind tabs; an answer stays with the blocks before it. */
function tabs(state) {
  const result = [];
  let group = [];
  let count = 0;
  const html = (content) => {
    const token = new state.Token('html_block', '', 0);
    token.content = content;
    result.push(token);
  };
  const flush = () => {
    group = inAllLanguages(group, state.Token);
    const languages = [...new Set(group.map(({ info }) => info.split(' ')[0]).filter((name) => LANGUAGES.has(name)))];
    if (languages.length < 2) {
      result.push(...group);
    } else {
      count += 1;
      const name = `tabs-${count}`;
      html('<div class="tabs">');
      languages.forEach((language, at) => {
        const checked = at === 0 ? ' checked' : '';
        html(`<input type="radio" name="${name}" id="${name}-${language}"${checked}><label for="${name}-${language}">`);
        html(`${LANGUAGES.get(language)}</label>`);
      });
      for (const language of languages) {
        html(`<div class="tab" data-language="${language}">`);
        result.push(...blocksOf(group, language));
        html('</div>');
      }
      html('</div>');
    }
    group = [];
  };
  for (const token of state.tokens) {
    if (token.type === 'fence' && token.level === 0) {
      group.push(token);
      continue;
    }
    flush();
    result.push(token);
  }
  flush();
  state.tokens = result;
}

/** Adds the other languages to blocks that are there for the shell alone, where that can be done for all of them. */
function inAllLanguages(group, Token) {
  const blocks = group.filter(({ info }) => LANGUAGES.has(info.split(' ')[0]) && !info.endsWith(' answer'));
  const others = blocks.map(({ info, content }) => (info.split(' ')[0] === 'sh' ? translated(content) : undefined));
  if (others.length === 0 || others.includes(undefined)) return group;
  return group.flatMap((block) => {
    const found = others[blocks.indexOf(block)];
    if (found === undefined) return [block];
    const more = ['js', 'python'].map((info) =>
      Object.assign(new Token('fence', 'code', 0), { info, content: found[info] }),
    );
    return [block, ...more];
  });
}

/** The blocks of a group in one language, each with the answer that comes next. */
function blocksOf(group, language) {
  return group.flatMap((block, at) => {
    if (block.info.split(' ')[0] !== language || block.info.endsWith(' answer')) return [];
    const answer = group.slice(at).find(({ info }) => info.endsWith(' answer'));
    return answer === undefined ? [block] : [block, answer];
  });
}

function fence({ info, content }, escape) {
  const [language = '', mark] = info.split(' ');
  const kind = mark === 'answer' ? 'answer' : LANGUAGES.has(language) ? 'code' : 'text';
  return `<pre class="${kind}" tabindex="0"><code>${escape(content)}</code></pre>\n`;
}
