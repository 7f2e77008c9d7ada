// The last answer and the values that a test put aside, and the paths into them: `hits.hits.0._source.a\.b`, `nodes.$id.name`.

/** What a test knows while it runs. */
export class Stash {
  values = new Map();
  /** The last answer: `{ status, text, body, headers }`. */
  answer;

  /** The value at a path of the last answer; undefined where there is none. */
  at(path) {
    if (path === '' || path === '$body') return this.answer?.body;
    return keysOf(String(path)).reduce((value, key) => this.#step(value, key), this.answer?.body);
  }

  #step(value, name) {
    if (value === null || value === undefined) return undefined;
    const key = this.#substitute(name);
    if (key === '_arbitrary_key_') return Object.keys(value)[0];
    return Object.hasOwn(Object(value), key) ? value[key] : undefined;
  }

  /** A copy of a value of the suite in which `$name` and `${name}` stand for what was put aside, in keys too. */
  resolve(value) {
    if (typeof value === 'string') return this.#value(value);
    if (Array.isArray(value)) return value.map((member) => this.resolve(member));
    if (value === null || typeof value !== 'object' || value.constructor !== Object) return value;
    return Object.fromEntries(
      Object.entries(value).map(([key, member]) => [this.#substitute(key), this.resolve(member)]),
    );
  }

  #value(text) {
    const name = /^\$\{?(\w+)\}?$/.exec(text)?.[1];
    return name !== undefined && this.values.has(name) ? this.values.get(name) : this.#substitute(text);
  }

  #substitute(text) {
    const put = (whole, name) => (this.values.has(name) ? String(this.values.get(name)) : whole);
    return text.replace(/\$\{(\w+)\}/g, put).replace(/^\$(\w+)$/, put);
  }
}

/** The keys of a path: dots part them, `\.` is a dot of a key. */
function keysOf(path) {
  return path.split(/(?<!\\)\./).map((key) => key.replaceAll('\\.', '.'));
}
