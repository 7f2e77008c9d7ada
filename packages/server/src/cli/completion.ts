import type { Command } from 'commander';

export const SHELLS = ['bash', 'zsh', 'fish'] as const;

type Shell = (typeof SHELLS)[number];

/** What may follow the words of a command. */
interface Node {
  /** The words so far, `sparrow` left out. */
  readonly path: string;
  readonly words: readonly { readonly text: string; readonly what: string }[];
  readonly options: readonly { readonly text: string; readonly what: string }[];
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
      .flatMap(({ long, description }) => (long === undefined ? [] : [{ text: long, what: description }])),
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
      ...options.map(({ text, what }) => `complete -c sparrow${when} -l '${text.slice(2)}' -d '${quoted(what)}'`),
    ];
  });
  return `# fish completion for sparrow: sparrow completion fish | source\n${lines.join('\n')}\n`;
}

/** A text inside single quotes of a shell. */
function quoted(text: string): string {
  return text.replaceAll("'", '’').replaceAll(':', '\\:');
}
