/** The strings of `const NAME: &[&str] = &[…];` in Rust source. */
export function namesIn(source: string, name: string): string[] {
  const list = new RegExp(`const ${name}: &\\[[^=]*\\] =\\s*&\\[([^\\]]*)\\];`).exec(source)?.[1];
  if (list === undefined) throw new Error(`there is no list ${name}`);
  return [...list.matchAll(/"([^"]+)"/g)].map((match) => match[1] ?? '');
}
