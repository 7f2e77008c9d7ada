// Builds the console into one page, packages/http/dist/console.html: its style and its script are in it, so that the
// server's policy can name both by their hashes and nothing else has to be served.
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';

import { build } from 'vite';

const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const PAGE = here('../http/dist/console.html');

// Preact's licence asks that its notice goes with every copy, and minifying takes comments out.
const PREACT = `/* Preact, https://preactjs.com:\n${readFileSync(fileURLToPath(new URL('LICENSE', packageOf('preact'))), 'utf8').trim()}\n*/\n`;

const { output } = await build({
  configFile: false,
  root: here('.'),
  logLevel: 'warn',
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  build: {
    write: false,
    target: 'es2022',
    cssCodeSplit: false,
    modulePreload: false,
    rolldownOptions: { input: here('src/main.tsx'), output: { format: 'iife' } },
  },
});
const script = output.find(({ type, isEntry }) => type === 'chunk' && isEntry).code;
const style = output.find(({ fileName }) => fileName.endsWith('.css')).source;

// Inside a page, these two would end the script early.
const harmless = script.replaceAll('</script', '<\\/script').replaceAll('<!--', '<\\!--');
const page = readFileSync(here('page.html'), 'utf8')
  .replace('<!-- style -->', () => `<style>${String(style).trim()}</style>`)
  .replace('<!-- script -->', () => `<script>${PREACT}${harmless.trim()}</script>`);
mkdirSync(dirname(PAGE), { recursive: true });
writeFileSync(`${PAGE}.tmp`, page);
renameSync(`${PAGE}.tmp`, PAGE);

function packageOf(name) {
  return import.meta.resolve(`${name}/package.json`);
}
