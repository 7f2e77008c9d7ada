import type { Action } from './operations.generated.js';

export { ACTIONS, type Action, OPERATIONS, type Operation } from './operations.generated.js';

/** What an engine says of one of its operations. */
export interface DeclaredOperation {
  /** What it does, as one sentence. */
  readonly about: string;
  /** What a key must be allowed to do. */
  readonly action: Action;
  /** What its body holds: one JSON value, or lines of them. A body is refused where there is to be none. */
  readonly body: 'none' | 'json' | 'lines';
  /** What that body holds, or each of its lines: the name of a schema of the OpenAPI document. */
  readonly holds?: string;
  /** The query parameters that it knows, besides those that every request may have. */
  readonly parameters: readonly string[];
  /** Whether it answers text, unless JSON is asked for. */
  readonly text: boolean;
  /** Whether it stops when its client goes away, also if it is not a `GET`. */
  readonly stops: boolean;
  /** Whether it changes nothing, so that its answer may be refused where there is no room for it. */
  readonly reads: boolean;
  /** Whether some requests for it are refused when more come than there is time for. */
  readonly shed: boolean;
}

/** What is known of an action. */
export interface DeclaredAction {
  /** Whether a role grants it on indices, or as a whole. */
  readonly scope: 'index' | 'cluster';
  /** The privileges that name it directly, narrowest first: the order of the sentence that refuses it. */
  readonly privileges: readonly string[];
  /** Whether the bodies of its requests name indices, of which each is then refused by itself. */
  readonly composite: boolean;
}
