import type { Command } from 'commander';

export const SHELLS = ['bash', 'zsh', 'fish'] as const;

type Shell = (typeof SHELLS)[number];

interface Candidate {
  readonly text: string;
  readonly what: string;
}

interface OptionCandidate extends Candidate {
  /** The values that it takes, where only some are. */
  readonly choices?: readonly string[] | undefined;
}

/** What may follow the words of a command. */
interface Node {
  /** The words so far, `sparrow` left out. */
  readonly path: string;
  readonly words: readonly Candidate[];
  readonly options: readonly OptionCandidate[];
}

/** A script that completes the command line in a shell: `source <(sparrow completion bash)`. */
export function completion(program: Command, shell: Shell, serveOptions: Node['options']): string {
  const nodes = [...walk(program, '')].map((node) =>
    node.path === '' || node.path === 'serve' ? { ...node, options: [...serveOptions, ...node.options] } : node,
  );
  switch (shell) {
    case 'bash':
      return bash(nodes);
    case 'zsh':
      return zsh(nodes);
    case 'fish':
      return fish(nodes);
  }
}

function* walk(command: Command, path: string): Generator<Node> {
  const shown = command
    .createHelp()
    .visibleCommands(command)
    .filter((one) => one.name() !== 'help');
  yield {
    path,
    words: shown.map((one) => ({ text: one.name(), what: one.description() })),
    options: command
      .createHelp()
      .visibleOptions(command)
      .flatMap(({ long, description, argChoices: choices }) =>
        long === undefined ? [] : [{ text: long, what: description, choices }],
      ),
  };
  for (const one of shown) yield* walk(one, path === '' ? one.name() : `${path} ${one.name()}`);
}

function bash(nodes: readonly Node[]): string {
  const cases = nodes
    .map(
      ({ path, words, options }) =>
        `    '${path}') candidates='${[...words, ...options].map(({ text }) => text).join(' ')}' ;;`,
    )
    .join('\n');
  return `# bash completion for sparrow: source <(sparrow completion bash)
_sparrow() {
  local path='' word candidates
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "$path $word" in
${followed(nodes, '      ', '"', (to) => `path='${to}'`)}
    esac
  done
  case "$path" in
${cases}
  esac
  case "$path \${COMP_WORDS[COMP_CWORD-1]}" in
${chosen(nodes, (choices) => `candidates='${choices}'`)}
  esac
  COMPREPLY=($(compgen -W "$candidates" -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _sparrow sparrow
`;
}

function zsh(nodes: readonly Node[]): string {
  const cases = nodes
    .map(({ path, words, options }) => {
      const all = [...words, ...options].map(({ text, what }) => `'${text}:${quoted(what)}'`).join(' ');
      return `    '${path}') candidates=(${all}) ;;`;
    })
    .join('\n');
  return `#compdef sparrow
# zsh completion for sparrow: source <(sparrow completion zsh)
_sparrow() {
  local current='' word
  local -a candidates
  for word in "\${words[@]:1:$((CURRENT - 2))}"; do
    case "$current $word" in
${followed(nodes, '      ', '"', (to) => `current='${to}'`)}
    esac
  done
  case "$current" in
${cases}
  esac
  case "$current \${words[CURRENT-1]}" in
${chosen(nodes, (choices) => `candidates=(${choices})`)}
  esac
  _describe 'sparrow' candidates || _files
}
compdef _sparrow sparrow
`;
}

/** For each command the words that lead to it, as branches of a \`case\`. */
function followed(nodes: readonly Node[], indent: string, quote: string, then: (path: string) => string): string {
  return nodes
    .filter(({ path }) => path !== '')
    .map(({ path }) => {
      const at = path.lastIndexOf(' ');
      const [parent, word] = at < 0 ? ['', path] : [path.slice(0, at), path.slice(at + 1)];
      return `${indent}${quote}${parent} ${word}${quote}) ${then(path)} ;;`;
    })
    .join('\n');
}

/** For each option that takes only some values, these values, as branches of a `case` of command and option. */
function chosen(nodes: readonly Node[], then: (choices: string) => string): string {
  return nodes
    .flatMap(({ path, options }) =>
      options.flatMap(({ text, choices }) =>
        choices === undefined ? [] : [`    '${path} ${text}') ${then(choices.join(' '))} ;;`],
      ),
    )
    .join('\n');
}

function fish(nodes: readonly Node[]): string {
  const lines = nodes.flatMap(({ path, words, options }) => {
    const seen = path === '' ? [] : path.split(' ');
    const inner = words.map(({ text }) => text).join(' ');
    const condition = [
      ...seen.map((word) => `__fish_seen_subcommand_from ${word}`),
      ...(inner === '' ? [] : [`not __fish_seen_subcommand_from ${inner}`]),
    ].join('; and ');
    const when = condition === '' ? '' : ` -n '${condition}'`;
    return [
      ...words.map(({ text, what }) => `complete -c sparrow${when} -f -a '${text}' -d '${quoted(what)}'`),
      ...options.map(({ text, what, choices }) => {
        const values = choices === undefined ? '' : ` -x -a '${choices.join(' ')}'`;
        return `complete -c sparrow${when} -l '${text.slice(2)}'${values} -d '${quoted(what)}'`;
      }),
    ];
  });
  return `# fish completion for sparrow: sparrow completion fish | source\n${lines.join('\n')}\n`;
}

/** A text inside single quotes of a shell. */
function quoted(text: string): string {
  return text.replaceAll("'", '’').replaceAll(':', '\\:');
}
