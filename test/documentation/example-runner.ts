// Runs the examples of a page as a reader would: in a folder whose `data` is that of a server that runs, one after another.
import { type ChildProcessWithoutNullStreams, execFile, spawn } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';

import { translated } from '../../packages/site/languages.mjs';
import { type Engine, NATIVE, emptied } from '../support/engines.js';
import type { RunningServer } from '../support/server.js';
import { type Fence, ROOT } from './pages.js';

export const LANGUAGES = ['sh', 'js', 'python'] as const;
export type Language = (typeof LANGUAGES)[number];

const CLI = join(ROOT, 'packages', 'server', 'dist', 'cli.js');

/** One example, with what the page shows of its answer. */
export interface Example {
  readonly language: Language;
  readonly text: string;
  readonly line: number;
  /** Why it cannot be run here; it is run if there is no reason. */
  readonly notRun: string | undefined;
  readonly answer: Fence | undefined;
  /** Stands beside the same thing in other languages: it runs only where its language is tried. */
  readonly isOneOfSeveral: boolean;
  /** Defines a function of the shell, which blocks in the shell alone need wherever a page is tried. */
  readonly isNeededEverywhere: boolean;
}

const isLanguage = (name: string): name is Language => (LANGUAGES as readonly string[]).includes(name);

/** The examples of a page. Blocks with nothing between them are the same thing in several languages. */
export function examplesOf(blocks: readonly Fence[]): Example[] {
  const groups: Fence[][] = [];
  for (const block of blocks) {
    const group = groups.at(-1);
    if (block.joined && group !== undefined) group.push(block);
    else groups.push([block]);
  }
  return groups.flatMap((group) => {
    const examples = group.filter(({ language, mark }) => isLanguage(language) && mark !== 'answer');
    const others = examples.map(({ language, mark, text }) =>
      language === 'sh' && mark !== 'answer' ? translated(`${text}\n`) : undefined,
    );
    const isTranslated = others.length > 0 && !others.includes(undefined);
    const several = isTranslated || new Set(group.map(({ language }) => language).filter(isLanguage)).size > 1;
    return group.flatMap((block, at): Example[] => {
      const { language, text, line, mark } = block;
      if (!isLanguage(language) || mark === 'answer') return [];
      // An answer is that of all blocks since the answer before.
      const answer = group.slice(at).find((later) => later.mark === 'answer');
      const notRun = /^not-run="(.+)"$/.exec(mark)?.[1];
      if (mark !== '' && notRun === undefined) throw new Error(`line ${String(line)}: what is [${mark}]?`);
      const isNeededEverywhere = /^\w+\(\) \{/m.test(text);
      const example = { language, text, line, notRun, answer, isOneOfSeveral: several, isNeededEverywhere };
      const other = isTranslated ? others[examples.indexOf(block)] : undefined;
      if (other === undefined) return [example];
      // What the site makes of it is run like what somebody wrote.
      const made = (['js', 'python'] as const).map((name) => ({
        ...example,
        language: name,
        text: other[name],
        isNeededEverywhere: false,
      }));
      return [example, ...made];
    });
  });
}

/** The address that pages give to a second server, whose data is in `elsewhere`, with the same repositories. */
const SECOND = 'localhost:9201';

/** A server on an empty data directory, a second one where a page has it, a shell beside them, and what examples need. */
export class World {
  readonly #folder: string;
  /** By the address that pages give to each. */
  readonly #servers: ReadonlyMap<string, RunningServer>;
  readonly #shell: ChildProcessWithoutNullStreams;
  /** Blocks that begin with an import are what later blocks of their language stand on. */
  readonly #setups = new Map<Language, string>();
  #count = 0;

  private constructor(folder: string, server: RunningServer, second: RunningServer | undefined) {
    this.#folder = folder;
    this.#servers = new Map([['localhost:9200', server], ...(second === undefined ? [] : [[SECOND, second] as const])]);
    const env = {
      ...process.env,
      PATH: [join(folder, 'bin'), process.env['PATH']].join(delimiter),
      SPARROW_URL: server.url,
      NO_COLOR: '1',
    };
    this.#shell = spawn('bash', ['--norc', '--noprofile'], { cwd: folder, env });
    this.#shell.stdin.write('exec 2>&1\n');
  }

  /** @param page the page whose examples are to be run */
  static async start(page: string, engine: Engine = NATIVE): Promise<World> {
    const folder = mkdtempSync(join(tmpdir(), 'sparrow-documentation-'));
    mkdirSync(join(folder, 'bin'));
    const command = join(folder, 'bin', 'sparrow');
    writeFileSync(command, `#!/bin/sh\nexec '${process.execPath}' '${CLI}' "$@"\n`);
    chmodSync(command, 0o755);
    writeFileSync(join(folder, 'package.json'), '{"type":"module"}');
    symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
    const args = ['--repo-path', join(folder, 'snapshots')];
    const server = await engine.start({ data: join(folder, 'data'), args });
    if (engine.name === 'cluster') await emptied(server);
    if (!page.includes(SECOND)) return new World(folder, server, undefined);
    const more = [...args, '--deploy-at-start', 'false'];
    return new World(folder, server, await engine.start({ data: join(folder, 'elsewhere'), args: more }));
  }

  async stop(): Promise<void> {
    this.#shell.stdin.end();
    for (const server of this.#servers.values()) await server.stop();
    rmSync(this.#folder, { recursive: true, force: true });
  }

  /** Runs an example; resolves with what it printed. */
  async run({ language, text }: Example): Promise<string> {
    let adapted = text;
    for (const [address, { url }] of this.#servers) adapted = adapted.replaceAll(address, url.replace('http://', ''));
    if (language === 'sh') return this.#runInShell(adapted);
    // A block with a connection of its own is a whole program.
    const isWhole = this.#setups.has(language) && /^(?:const \w+ = new Client|def es)\(/m.test(adapted);
    const setup = isWhole ? '' : (this.#setups.get(language) ?? '');
    if (!isWhole && /^(?:import|from) /.test(adapted)) this.#setups.set(language, `${setup}${adapted}\n`);
    this.#count += 1;
    const file = join(this.#folder, `example-${String(this.#count)}.${language === 'js' ? 'js' : 'py'}`);
    writeFileSync(file, `${setup}${adapted}\n`);
    return this.#runFile(language === 'js' ? process.execPath : 'python3', file);
  }

  #runFile(program: string, file: string): Promise<string> {
    return new Promise((resolve, reject) => {
      execFile(program, [file], { cwd: this.#folder }, (error, stdout, stderr) => {
        if (error === null && stderr === '') resolve(stdout);
        else reject(new Error(`${stderr}\n${stdout}`));
      });
    });
  }

  #runInShell(text: string): Promise<string> {
    this.#count += 1;
    const mark = `end-of-example-${String(this.#count)}`;
    const script = join(this.#folder, `${mark}.sh`);
    writeFileSync(script, `${text}\n`);
    return new Promise((resolve, reject) => {
      let output = '';
      const read = (chunk: Buffer): void => {
        output += chunk.toString();
        const end = new RegExp(`${mark} (\\d+)\\n$`).exec(output);
        if (end === null) return;
        this.#shell.stdout.off('data', read);
        const printed = output.slice(0, end.index);
        if (end[1] === '0') resolve(printed);
        else reject(new Error(`ended with ${String(end[1])}:\n${printed}`));
      };
      this.#shell.stdout.on('data', read);
      this.#shell.stdin.write(`source '${script}'; echo "${mark} $?"\n`);
    });
  }
}

/** What is wrong with an answer, or undefined if it is as the page shows it. */
export function difference(printed: string, { language, text }: Fence): string | undefined {
  if (language !== 'json') {
    // What takes milliseconds takes seconds on a busy machine.
    const pattern = text.trim().replaceAll('… ms', '…').split('…').map(escaped).join('.*');
    return new RegExp(`^${pattern}$`, 's').test(printed.trim())
      ? undefined
      : `shown is\n${text}\nbut it is\n${printed}`;
  }
  let actual: unknown;
  try {
    actual = JSON.parse(printed);
  } catch {
    return `not one JSON text:\n${printed}`;
  }
  const at = mismatch(actual, JSON.parse(text), '$');
  return at === undefined ? undefined : `${at}; the answer is\n${printed}`;
}

/** Scores are sums of 32-bit numbers: the last digits depend on the processor. */
const TOLERANCE = 0.005;

/** A page may leave out members of objects, `…` in strings, and the rest of a list with a last `"…"`. */
function mismatch(actual: unknown, shown: unknown, path: string): string | undefined {
  if (typeof shown === 'number' && typeof actual === 'number') {
    return Math.abs(actual - shown) <= TOLERANCE * Math.abs(shown) ? undefined : `${path}: ${String(actual)}`;
  }
  if (typeof shown === 'string' && typeof actual === 'string') {
    const pattern = new RegExp(`^${shown.split('…').map(escaped).join('.*')}$`, 's');
    return pattern.test(actual) ? undefined : `${path}: ${actual}`;
  }
  if (Array.isArray(shown) && Array.isArray(actual)) {
    const isOpen = shown.at(-1) === '…';
    const parts: unknown[] = isOpen ? shown.slice(0, -1) : shown;
    if (isOpen ? actual.length < parts.length : actual.length !== parts.length) {
      return `${path}: ${String(actual.length)} items`;
    }
    return first(parts, (part, at) => mismatch(actual[at], part, `${path}[${String(at)}]`));
  }
  if (typeof shown === 'object' && shown !== null && typeof actual === 'object' && actual !== null) {
    return first(Object.entries(shown), ([key, part]) =>
      mismatch((actual as Record<string, unknown>)[key], part, `${path}.${key}`),
    );
  }
  return actual === shown ? undefined : `${path}: ${JSON.stringify(actual)}`;
}

function first<T>(list: readonly T[], check: (item: T, at: number) => string | undefined): string | undefined {
  for (const [at, item] of list.entries()) {
    const found = check(item, at);
    if (found !== undefined) return found;
  }
  return undefined;
}

const escaped = (text: string): string => text.replace(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`);
