// The notices of what a platform package is linked from: nearly every licence asks that its text goes with the binary.
import { readFileSync, readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';

import { StepFailed, output } from './process.mjs';

const OURS = 'sparrow-node';
/** Folders of what is not linked. */
const ASIDE = /^(?:tests?|test_data|examples|bench(?:es)?|docs?)$/;
const LICENCE_FILE = /^(?:licen[cs]e|copying|notice|unlicense)/i;
/** How deep a crate is searched: sources of C libraries in it have files of their own. */
const DEPTH = 2;

/** MIT's text, for those who name it and ship no file. */
const MIT = `Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated documentation
files (the "Software"), to deal in the Software without restriction, including without limitation the rights to use, copy,
modify, merge, publish, distribute, sublicense, and/or sell copies of the Software, and to permit persons to whom the
Software is furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all copies or substantial portions of the
Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE
WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR
COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR
OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.`;

/** The licence of the packages with ONNX Runtime: its own, and where those of its parts are. */
export function runtimeNotices(version) {
  return [
    `ONNX Runtime ${version}, as it comes in the npm package onnxruntime-node.`,
    `MIT License\n\nCopyright (c) Microsoft Corporation\n\n${MIT}`,
    'The licences of what ONNX Runtime is itself built from are in its sources, in the file',
    `https://github.com/microsoft/onnxruntime/blob/v${version}/ThirdPartyNotices.txt\n`,
  ].join('\n\n');
}

/**
 * `THIRD-PARTY.md`: every crate in the addon with its version and licence, and each licence text once.
 *
 * @param triple what the addon was built for
 */
export function thirdPartyNotices(triple) {
  const crates = linkedCrates(triple);
  const byText = new Map();
  const add = (text, user) => byText.set(text, [...(byText.get(text) ?? []), user]);
  for (const crate of crates) {
    for (const text of licenceTexts(crate, crates)) add(text, `${crate.name} ${crate.version}`);
  }
  const rows = crates.map(({ name, version, license }) => `| ${name} | ${version} | ${license ?? 'see its file'} |`);
  const texts = [...byText].map(([text, users]) => `## ${users.join(', ')}\n\n${fence(text)}`);
  return [
    '# Third-party software in this package',
    'The addon is linked from the Rust standard library (MIT OR Apache-2.0) and these crates:\n',
    '| crate | version | licence |\n|---|---|---|',
    ...rows,
    '\nThe Apache License 2.0 is in `LICENSE`.\n',
    ...texts,
  ].join('\n');
}

/** The crates of others that the addon is linked from: what it reaches without test and build dependencies. */
function linkedCrates(triple) {
  const args = ['metadata', '--format-version=1', '--locked', '--filter-platform', triple];
  const metadata = output('cargo', args);
  if (metadata === undefined) throw new StepFailed('cargo metadata does not answer');
  const { packages, resolve } = JSON.parse(metadata);
  const packageOf = new Map(packages.map((crate) => [crate.id, crate]));
  const nodeOf = new Map(resolve.nodes.map((node) => [node.id, node]));
  const reached = new Set(packages.filter(({ name }) => name === OURS).map(({ id }) => id));
  for (const id of reached) {
    for (const { pkg, dep_kinds: kinds } of nodeOf.get(id).deps) {
      const isMacro = packageOf.get(pkg).targets.some(({ kind }) => kind.includes('proc-macro'));
      if (!isMacro && kinds.some(({ kind }) => kind === null)) reached.add(pkg);
    }
  }
  // What comes from a registry has a source; our own crates have none.
  return [...reached]
    .map((id) => packageOf.get(id))
    .filter(({ source }) => source !== null)
    .sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** The texts to reproduce for a crate: of two licences to choose from, MIT's, which names the holders. */
function licenceTexts(crate, crates) {
  const own = licenceFiles(dirname(crate.manifest_path));
  // Crates of one repository often leave the file to the main one.
  const sibling = crates.find(
    (other) => other.repository === crate.repository && licenceFiles(dirname(other.manifest_path)).length > 0,
  );
  const files = own.length > 0 || sibling === undefined ? own : licenceFiles(dirname(sibling.manifest_path));
  const isMit = /MIT/.test(crate.license ?? '');
  const chosen = files.some((file) => /mit/i.test(file))
    ? files.filter((file) => !/apache|unlicense/i.test(file))
    : files;
  if (chosen.length > 0) return chosen.map((file) => readFileSync(file, 'utf8').replaceAll('\r\n', '\n').trim());
  const holders = crate.authors.length > 0 ? crate.authors.join(', ') : `the authors of ${crate.name}`;
  return isMit ? [`MIT License\n\nCopyright (c) ${holders}\n\n${MIT}`] : [];
}

function licenceFiles(directory, depth = DEPTH) {
  const entries = readdirSync(directory, { withFileTypes: true });
  const names = entries.filter((entry) => entry.isFile() && LICENCE_FILE.test(entry.name)).map(({ name }) => name);
  // Where both are, COPYING is the GPL that the other file is the alternative to.
  const chosen = names.some((name) => /^licen/i.test(name)) ? names.filter((name) => !/^copying/i.test(name)) : names;
  const isInside = (entry) => entry.isDirectory() && !ASIDE.test(entry.name);
  const inner = depth === 0 ? [] : entries.filter(isInside).map(({ name }) => name);
  return [
    ...chosen.filter((name) => !/\.(?:rs|c|h|spdx)$/.test(name)).map((name) => join(directory, name)),
    ...inner.flatMap((name) => licenceFiles(join(directory, name), depth - 1)),
  ];
}

/** A text as a block that no run of backticks in it can end. */
function fence(text) {
  const longest = Math.max(2, ...[...text.matchAll(/`+/g)].map(([run]) => run.length));
  const ticks = '`'.repeat(longest + 1);
  return `${ticks}text\n${text}\n${ticks}\n`;
}
