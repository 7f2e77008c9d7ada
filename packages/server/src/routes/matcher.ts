import { type Route, routesByPath } from './table.js';

/** A route and the parameters that a path gives it. */
export interface Match {
  readonly route: Route;
  readonly path: Readonly<Record<string, string>>;
}

/** One place in the tree of all paths. */
interface Place {
  readonly literals: Map<string, Place>;
  /** What follows a parameter. Its name is the route's own affair. */
  parameter: Place | undefined;
  route: { readonly route: Route; readonly names: readonly string[] } | undefined;
}

/** Paths whose meaning is plain: nothing in them is escaped, and no segment is empty or stands for another. */
const PLAIN = /^(?:\/[\w~!$&'()*+,;=:@.-]+)+\/?$/;
const DOTS = /\/\.{1,2}(?:\/|$)/;
const ESCAPED_DOTS = /(?:^|[/\\])(?:\.|%2e){1,2}(?:[/\\]|$)/i;

/** Most paths whose route is remembered: searches of a few indices are most of what there is. */
const REMEMBERED = 1000;

/**
 * Finds the route of a path: the same table as Hono's, in the same order (at each segment, literals before parameters).
 */
export class Matcher {
  readonly #root: Place = place();
  readonly #known = new Map<string, Match>();

  constructor(routes: readonly Route[] = routesByPath()) {
    for (const route of routes) {
      let at = this.#root;
      const names: string[] = [];
      for (const segment of segments(route.path)) {
        const name = /^\{(\w+)\}$/.exec(segment)?.[1];
        if (name !== undefined) {
          names.push(name);
          at = at.parameter ??= place();
        } else {
          const next = at.literals.get(segment) ?? place();
          at.literals.set(segment, next);
          at = next;
        }
      }
      at.route = { route, names };
    }
  }

  /** The route of a path, or undefined if there is none or the path is not a plain one. */
  match(path: string): Match | undefined {
    const known = this.#known.get(path);
    if (known !== undefined) return known;
    if (!PLAIN.test(path) || DOTS.test(path)) return undefined;
    const match = this.#find(path);
    if (match === undefined) return undefined;
    if (this.#known.size >= REMEMBERED) this.#known.clear();
    this.#known.set(path, match);
    return match;
  }

  /**
   * The route of a path whose parameters may be escaped, or undefined if there is none, or an escape is none. A segment that stands
   * for another one has no route.
   */
  matchEscaped(path: string): Match | undefined {
    if (ESCAPED_DOTS.test(path)) return undefined;
    const match = this.#find(path);
    try {
      const values = Object.entries(match?.path ?? {}).map(([name, value]) => [name, decodeURIComponent(value)]);
      return match && { route: match.route, path: Object.fromEntries(values) as Match['path'] };
    } catch {
      return undefined;
    }
  }

  #find(path: string): Match | undefined {
    const values: string[] = [];
    const found = find(this.#root, segments(path), 0, values)?.route;
    if (found === undefined) return undefined;
    return {
      route: found.route,
      path: Object.fromEntries(found.names.map((name, at) => [name, values[at] ?? ''])),
    };
  }
}

function find(at: Place, path: readonly string[], depth: number, values: string[]): Place | undefined {
  const segment = path[depth];
  if (segment === undefined) return at.route === undefined ? undefined : at;
  const literal = at.literals.get(segment);
  const found = literal === undefined ? undefined : find(literal, path, depth + 1, values);
  if (found !== undefined || at.parameter === undefined) return found;
  const before = values.length;
  values.push(segment);
  const behind = find(at.parameter, path, depth + 1, values);
  if (behind === undefined) values.length = before;
  return behind;
}

function place(): Place {
  return { literals: new Map(), parameter: undefined, route: undefined };
}

function segments(path: string): readonly string[] {
  return path.split('/').filter((segment) => segment !== '');
}
