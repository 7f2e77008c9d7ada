import type { Ranked } from '@sparrow-search/engine';

import { type Branch, type BranchHit, fused, within } from './branches.js';
import { hitSpans } from './hits.js';
import { edited, members, rawOf } from './json.js';
import { type Asking, multiple } from './multiple.js';
import { keyIn, theseOf } from './ranked-hits.js';
import type { Fusion, Leaf, Node } from './retrievers.js';
import type { SearchBody } from './search-body.js';
import { shortest } from './shortest.js';

/** How a hit of a list counts in a fusion: its place, and its part of the sum without the weight of the list and with it. */
interface Counted {
  readonly rank: number;
  readonly score: number;
  readonly weighted: number;
}

/** How hits of a fusion come to their scores, in the words of Elasticsearch, as the native engine explains them. */
export class Explanations {
  readonly #fusion: Fusion;
  readonly #branch: Branch;
  /** What the cluster says of the scores in the lists that queries find, by documents. */
  readonly #ofLists: ReadonlyMap<Leaf, ReadonlyMap<string, string>>;
  readonly #counted = new Map<Fusion, ReadonlyMap<number, readonly ReadonlyMap<string, Counted>[]>>();
  readonly #hits = new Map<Branch, ReadonlyMap<string, BranchHit>>();

  private constructor(fusion: Fusion, branch: Branch, ofLists: ReadonlyMap<Leaf, ReadonlyMap<string, string>>) {
    this.#fusion = fusion;
    this.#branch = branch;
    this.#ofLists = ofLists;
  }

  /**
   * Asks the cluster to explain the scores of a page in each of the lists.
   *
   * @param filter behind the queries of the lists
   */
  static async read(
    asking: Asking,
    body: SearchBody,
    fusion: Fusion,
    branch: Branch,
    page: readonly Ranked[],
    filter: string | undefined,
  ): Promise<Explanations> {
    const leaves = queriesIn(fusion);
    if (page.length === 0 || leaves.length === 0) return new Explanations(fusion, branch, new Map());
    const { filter: these, most } = theseOf(page);
    const only = [...these.map((it) => JSON.stringify(it)), ...(filter === undefined ? [] : [filter])].join(',');
    const boosts = body.section('indices_boost');
    const more = boosts === undefined ? '' : `,"indices_boost":${boosts}`;
    // A filter behind the query stays out of what is said about its scores.
    const behind = `"post_filter":{"bool":{"filter":[${only}]}},"size":${String(most)},"explain":true,"_source":false${more}`;
    const answers = await multiple(
      asking,
      leaves.map((leaf) => `{"query":${body.leafQuery(leaf)},${behind}}`),
    );
    return new Explanations(
      fusion,
      branch,
      new Map(leaves.map((leaf, at) => [leaf, explanationsIn(answers[at] ?? '')])),
    );
  }

  /** The explanation of a hit, as JSON. */
  of(key: string): string {
    return this.#fused(this.#fusion, this.#branch, key);
  }

  #fused(fusion: Fusion, branch: Branch, key: string): string {
    const hit = this.#hit(branch, key);
    if (hit === undefined) return explained('0.0', 'no matching clause');
    const inWindow = this.#inWindow(fusion, branch, hit);
    if (hit.score === hit.own) return inWindow;
    const description =
      'shown no higher than the hit before it, which comes from a narrower window than the ' +
      `[${String(hit.window)}] first hits of each list:`;
    return explained(shortest(hit.score), description, [inWindow]);
  }

  #inWindow(fusion: Fusion, { inputs }: Branch, { key, own, window }: BranchHit): string {
    const { method, rerank } = fusion;
    if (rerank !== undefined) {
      const [{ node } = {}] = fusion.inputs;
      const inner = node === undefined ? [] : [this.#source(node, inputs[0], key)];
      const description =
        `text_similarity_reranker match using inference endpoint: [${rerank.id}] on document field: [${rerank.field}] ` +
        'matching on source query with score:';
      return explained(shortest(own), description, inner);
    }
    const lists = this.#lists(fusion, inputs, window);
    if (fusion.indexOf !== undefined) return this.#calibrated(fusion, inputs, key, own, lists);
    const all = fusion.inputs.map(({ node, weight, normalizer }, at) => {
      const which = `at index [${String(at)}]${node.name === undefined ? '' : ` [${node.name}]`}`;
      const found = lists[at]?.get(key);
      if (found === undefined) {
        const what = method.kind === 'rrf' ? 'rrf' : 'weighted';
        const missing = explained('0.0', `${what} score: [0], result not found in query ${which}`);
        return { rank: 0, weight, score: 0, text: missing };
      }
      const { rank, score } = found;
      const source = [this.#source(node, inputs[at], key)];
      if (method.kind === 'rrf') {
        const factor = weight === 1 ? '' : ` * weight [${shortest(weight)}]`;
        const description =
          `rrf score: [${shortest(score)}], for rank [${String(rank)}] in query ${which} computed as ` +
          `[1 / (${String(rank)} + ${String(method.rankConstant)})]${factor}, for matching query with score`;
        return { rank, weight, score, text: explained(String(rank), description, source) };
      }
      const weighted = shortest(found.weighted);
      const description =
        `weighted score: [${weighted}] in query ${which} computed as [${shortest(weight)} * ${shortest(score)}] using ` +
        `score normalizer [${normalizer}] for original matching query with score:`;
      return { rank, weight, score, text: explained(weighted, description, source) };
    });
    const weights = all.map(({ weight }) => shortest(weight)).join(', ');
    let description: string;
    if (method.kind === 'rrf') {
      const weighted = all.every(({ weight }) => weight === 1) ? '' : ` and weights [${weights}]`;
      description =
        `rrf score: [${shortest(own)}] computed for initial ranks [${all.map(({ rank }) => rank).join(', ')}] with ` +
        `rankConstant: [${String(method.rankConstant)}]${weighted} as sum of [1 / (rank + rankConstant)] for each query`;
    } else {
      description =
        `weighted linear combination score: [${shortest(own)}] computed for normalized scores ` +
        `[${all.map(({ score }) => shortest(score)).join(', ')}] and weights [${weights}] as sum of ` +
        '(weight[i] * score[i]) for each query.';
    }
    return explained(
      shortest(own),
      description,
      all.map(({ text }) => text),
    );
  }

  #calibrated(
    fusion: Fusion,
    inputs: readonly Branch[],
    key: string,
    own: number,
    lists: readonly ReadonlyMap<string, Counted>[],
  ): string {
    const details = fusion.inputs.flatMap(({ node, weight, maps = [] }, at) => {
      const map = maps[fusion.indexOf?.(key) ?? 0] ?? maps.find((it) => it !== undefined);
      // Nothing is known of a list that can hold no document.
      if (map === undefined) return [];
      const name = node.name === undefined ? '' : ` [${node.name}]`;
      const which = `query at index [${String(at)}]${name} with weight [${shortest(weight)}]`;
      const found = lists[at]?.get(key);
      if (found === undefined) {
        const absent = `calibrated score of a result not found in ${which}`;
        return [explained(shortest(map.probability_of_absent), absent)];
      }
      const description = `calibrated score in ${which}, for original matching query with score:`;
      return [explained(shortest(found.score), description, [this.#source(node, inputs[at], key)])];
    });
    return explained(shortest(own), 'calibrated score, computed as the weighted mean of:', details);
  }

  /** The hits of each list of a fusion as they count in a window, which are the same for all hits of a page. */
  #lists(fusion: Fusion, inputs: readonly Branch[], window: number): readonly ReadonlyMap<string, Counted>[] {
    const known = this.#counted.get(fusion)?.get(window);
    if (known !== undefined) return known;
    const lists = within(fusion, inputs, window).map((list) => {
      // What the list alone would come to, without its weight and with it.
      const weighted = byKey(fused(fusion, [list]));
      const alone = byKey(fused(fusion, [{ ...list, weight: 1 }]));
      return new Map(
        list.hits.map(({ key }, at) => [
          key,
          { rank: at + 1, score: alone.get(key)?.score ?? 0, weighted: weighted.get(key)?.score ?? 0 },
        ]),
      );
    });
    this.#counted.set(fusion, new Map([...(this.#counted.get(fusion) ?? []), [window, lists]]));
    return lists;
  }

  /** A hit of a list. */
  #hit(branch: Branch | undefined, key: string): BranchHit | undefined {
    if (branch === undefined) return undefined;
    let hits = this.#hits.get(branch);
    if (hits === undefined) this.#hits.set(branch, (hits = byKey(branch.hits)));
    return hits.get(key);
  }

  /** How a document comes to its score in one of the lists. */
  #source(node: Node, branch: Branch | undefined, key: string): string {
    const score = shortest(this.#hit(branch, key)?.score ?? 0);
    if (node.kind === 'fused') {
      const made = branch?.before ?? branch;
      const explanation = made === undefined ? '' : this.#fused(node, made, key);
      if (made === branch || shortest(this.#hit(made, key)?.score ?? 0) === score) return explanation;
      return explained(score, 'score after rescoring, of:', [explanation]);
    }
    // The neighbours over all shards: no one shard can say it.
    if (node.knn !== undefined) return explained(score, 'within top k documents');
    const found = this.#ofLists.get(node)?.get(key) ?? explained(score, 'score');
    return branch?.before === undefined ? found : withValue(found, score);
  }
}

function byKey<T extends Ranked>(hits: readonly T[]): ReadonlyMap<string, T> {
  return new Map(hits.map((hit) => [hit.key, hit]));
}

/** An explanation of another score. */
function withValue(explanation: string, score: string): string {
  const parts = members(explanation, 0).filter(({ name }) => name === 'value');
  return edited(
    explanation,
    parts.map(({ start, end }) => ({ start, end, text: score })),
  );
}

function explained(value: string, description: string, details: readonly string[] = []): string {
  return `{"value":${value},"description":${JSON.stringify(description)},"details":[${details.join(',')}]}`;
}

/** The lists that queries find, without those of neighbours. */
function queriesIn(node: Node): readonly Leaf[] {
  if (node.kind === 'leaf') return node.knn === undefined ? [node] : [];
  return node.inputs.flatMap((input) => queriesIn(input.node));
}

function explanationsIn(answer: string): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  for (const { start } of hitSpans(answer)) {
    const explanation = members(answer, start).find(({ name }) => name === '_explanation');
    if (explanation !== undefined) found.set(keyIn(answer, start), rawOf(answer, explanation));
  }
  return found;
}
