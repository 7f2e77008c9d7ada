import process from 'node:process';

/** A word of a command line, quoted where a shell would take it for something else, so that the line can be copied. */
export function shellWord(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", String.raw`'\''`)}'`;
}

/** How the command line was begun, for hints that are to be copied: in a checkout there is no `sparrow`, but `npm start --`. */
export function commandName(environment: Readonly<NodeJS.ProcessEnv> = process.env): string {
  const script = environment['npm_lifecycle_event'] ?? '';
  return environment['npm_package_name'] === 'sparrow' && ['start', 'demo'].includes(script)
    ? 'npm start --'
    : 'sparrow';
}
