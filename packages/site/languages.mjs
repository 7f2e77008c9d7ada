// The same request in JavaScript and Python, made from the example in curl: one source, three tabs. The tests run all three.
import { clientCall } from './client-calls.mjs';

const ADDRESS = /^(?:http:\/\/)?localhost:(\d+)(\/.*)?$/;
const PORT = '9200';
const WIDTH = 100;

/** What the two lines that make `KEY` and `es` are in another language, for the server whose data is in `folder`. */
const SETUPS = {
  js: (folder, port) => `import { readFileSync } from 'node:fs';
import { Client } from '@elastic/elasticsearch'; // npm install @elastic/elasticsearch@8

const client = new Client({
  node: 'http://localhost:${port}',
  auth: { apiKey: readFileSync('${folder}/owner.key', 'utf8').trim() },
});
`,
  python: (folder, port) => `import json, pathlib, urllib.request

KEY = pathlib.Path('${folder}/owner.key').read_text().strip()


def es(method, path, body=None):
    request = urllib.request.Request(
        'http://localhost:${port}' + path,
        method=method,
        headers={'Authorization': 'ApiKey ' + KEY, 'Content-Type': 'application/json'},
        data=None if body is None else json.dumps(body).encode(),
    )
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)
`,
};

const CONNECTION = /^KEY=\$\(cat ([\w-]+)\/owner\.key\)\n(?:es\(\) \{[^\n]*\}\n)?/;

/**
 * A block for the shell in the other languages: the lines that make `KEY` and `es`, calls of `es`, or both.
 *
 * @returns {{ js: string, python: string } | undefined} undefined where it does something else as well
 */
export function translated(text) {
  const [connection = '', folder] = CONNECTION.exec(text) ?? [];
  const requests = requestsOf(text.slice(connection.length));
  if (requests === undefined || (folder === undefined && requests.length === 0)) return undefined;
  const [port = PORT, ...others] = new Set(requests.map((request) => request.port));
  // The client that there is asks the usual server.
  if (others.length > 0 || (folder === undefined && port !== PORT)) return undefined;
  const block = (language, write) => [
    ...(folder === undefined ? [] : [SETUPS[language](folder, port)]),
    ...requests.map((request) => `${write(request)}\n`),
  ];
  return { js: block('js', inJavaScript).join(''), python: block('python', inPython).join('') };
}

/**
 * What the calls of `es` in a block send.
 *
 * @returns {{ port: string, method: string, path: string, body?: object }[] | undefined} undefined where it does something else as well
 */
export function requestsOf(text) {
  const requests = commandsOf(text)?.map(requestOf);
  return requests?.includes(undefined) ? undefined : requests;
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
function requestOf([program, ...words]) {
  if (program !== 'es') return undefined;
  const call = {};
  while (words.length > 0) {
    const word = words.shift();
    const address = ADDRESS.exec(word);
    if (word === '-X') call.method = words.shift();
    else if (word === '-d') call.body = words.shift();
    else if (address !== null && call.path === undefined) [, call.port, call.path = '/'] = address;
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
  name: (name) => (/^[A-Za-z_]\w*$/.test(name) ? name : quoted(name)),
  open: '{ ',
  close: ' }',
  value: (value) => (typeof value === 'string' ? quoted(value) : JSON.stringify(value)),
  step: '  ',
};
const PYTHON = {
  name: quoted,
  open: '{',
  close: '}',
  value: (value) =>
    typeof value === 'string'
      ? quoted(value)
      : ({ true: 'True', false: 'False', null: 'None' }[String(value)] ?? JSON.stringify(value)),
  step: '    ',
};

/** By the method that Elastic's client has for the request, or as the path where only Sparrow has it. */
function inJavaScript(request) {
  const { method, path, body } = request;
  const plain = { name: 'transport.request', params: { method, path, ...(body === undefined ? {} : { body }) } };
  const { name, params } = clientCall(request) ?? plain;
  const start = `console.log(JSON.stringify(await client.${name}(`;
  const isEmpty = Object.keys(params).length === 0;
  return `${start}${isEmpty ? '' : literal(params, JS, '', WIDTH - start.length - 4)})));`;
}

function inPython({ method, path, body }) {
  const start = `print(json.dumps(es(${quoted(method)}, ${quoted(path)}`;
  return `${start}${body === undefined ? '' : `, ${literal(body, PYTHON, '', WIDTH - start.length - 5)}`})))`;
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
