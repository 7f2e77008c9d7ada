// The same request in JavaScript and Python, made from the example in curl: one source, three tabs. The tests run all three.

const ADDRESS = /^(?:http:\/\/)?localhost:9200(\/.*)?$/;
const WIDTH = 100;

const SETUPS = {
  js: `import { readFileSync } from 'node:fs';
import { Client } from '@elastic/elasticsearch'; // npm install @elastic/elasticsearch@8

const client = new Client({
  node: 'http://localhost:9200',
  auth: { apiKey: readFileSync('data/owner.key', 'utf8').trim() },
});
`,
  python: `import json, pathlib, urllib.request

KEY = pathlib.Path('data/owner.key').read_text().strip()


def es(method, path, body=None):
    request = urllib.request.Request(
        'http://localhost:9200' + path,
        method=method,
        headers={'Authorization': 'ApiKey ' + KEY, 'Content-Type': 'application/json'},
        data=None if body is None else json.dumps(body).encode(),
    )
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)
`,
};

/**
 * A block for the shell in the other languages: the two lines that make `KEY` and `es`, or calls of `es`.
 *
 * @returns {{ js: string, python: string } | undefined} undefined where it does something else as well
 */
export function translated(text) {
  if (/^KEY=\$\(cat data\/owner\.key\)\nes\(\) \{[^\n]*\}\n*$/.test(text)) return { ...SETUPS };
  const calls = commandsOf(text)?.map(callOf);
  if (calls === undefined || calls.length === 0 || calls.includes(undefined)) return undefined;
  return {
    js: calls.map((call) => written(call, JS)).join('\n') + '\n',
    python: calls.map((call) => written(call, PYTHON)).join('\n') + '\n',
  };
}

/** The words of each command; undefined where the shell does more than to take away quotes. */
function commandsOf(text) {
  const commands = [];
  let words = [];
  const end = () => {
    if (words.length > 0) commands.push(words);
    words = [];
  };
  // A quoted text, a comment, a line that goes on, the end of a line, or a plain word.
  const token = /'([^']*)'|"([^"$`\\]*)"|(#[^\n]*)|(\\\n)|(\n)|([ \t]+)|([^\s'"$`\\;|&<>()#*?{}[\]~!]+)/gy;
  let isGlued = false;
  while (token.lastIndex < text.length) {
    const found = token.exec(text);
    if (found === null) return undefined;
    const [, single, double, , , line, , plain] = found;
    const word = single ?? double ?? plain;
    if (word !== undefined) words.push(isGlued ? words.pop() + word : word);
    isGlued = word !== undefined;
    if (line !== undefined) end();
  }
  end();
  return commands;
}

/** A call of `es` as what it sends. */
function callOf([program, ...words]) {
  if (program !== 'es') return undefined;
  const call = {};
  while (words.length > 0) {
    const word = words.shift();
    const address = ADDRESS.exec(word);
    if (word === '-X') call.method = words.shift();
    else if (word === '-d') call.body = words.shift();
    else if (address !== null && call.path === undefined) call.path = address[1] ?? '/';
    else return undefined;
  }
  if (call.path === undefined) return undefined;
  if (call.body === undefined) return { method: 'GET', ...call };
  try {
    return { method: 'POST', ...call, body: JSON.parse(call.body) };
  } catch {
    return undefined;
  }
}

const quoted = (text) =>
  `'${JSON.stringify(text)
    .slice(1, -1)
    .replaceAll(String.raw`\"`, '"')
    .replaceAll("'", String.raw`\'`)}'`;
const JS = {
  call: (args) => `console.log(JSON.stringify(await client.transport.request(${args})));`,
  name: (name) => (/^[A-Za-z_]\w*$/.test(name) ? name : quoted(name)),
  open: '{ ',
  close: ' }',
  value: (value) => (typeof value === 'string' ? quoted(value) : JSON.stringify(value)),
  step: '  ',
};
const PYTHON = {
  call: (args) => `print(json.dumps(es(${args})))`,
  name: quoted,
  open: '{',
  close: '}',
  value: (value) =>
    typeof value === 'string'
      ? quoted(value)
      : ({ true: 'True', false: 'False', null: 'None' }[String(value)] ?? JSON.stringify(value)),
  step: '    ',
};

function written({ method, path, body }, language) {
  if (language === JS)
    return language.call(literal({ method, path, ...(body === undefined ? {} : { body }) }, JS, '', 32));
  const start = `${quoted(method)}, ${quoted(path)}`;
  const room = WIDTH - start.length - 24;
  return language.call(body === undefined ? start : `${start}, ${literal(body, language, '', room)}`);
}

/** A value in a language: in one line where it fits, else a member a line. */
function literal(value, language, indent, room) {
  if (typeof value !== 'object' || value === null) return language.value(value);
  const isList = Array.isArray(value);
  const entries = isList ? value.map((item) => ['', item]) : Object.entries(value);
  const [open, close] = isList ? ['[', ']'] : [language.open, language.close];
  const before = (name) => (isList ? '' : `${language.name(name)}: `);
  const inLine = entries.map(([name, part]) => before(name) + literal(part, language, '', Infinity)).join(', ');
  if (entries.length === 0) return isList ? '[]' : '{}';
  const short = `${open}${inLine}${close}`;
  if (short.length <= room) return short;
  const inner = indent + language.step;
  const lines = entries.map(([name, part]) => {
    const start = inner + before(name);
    return `${start}${literal(part, language, inner, WIDTH - start.length - 1)},\n`;
  });
  return `${open.trim()}\n${lines.join('')}${indent}${close.trim()}`;
}
