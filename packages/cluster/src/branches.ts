import { type Ranked, type Turns, fuseCalibrated, fuseLists } from '@sparrow-search/engine';

import type { Json, Span } from './json.js';
import {
  type Fusion,
  type Input,
  type Leaf,
  type Node,
  MAX_WINDOW,
  type Rerank,
  depthOf,
  windows,
} from './retrievers.js';

/** A hit of a list, whose score is the one that is shown. */
export interface BranchHit extends Ranked {
  /** The score that it came in with: a wider window may give more than the hit before it has, which is shown then. */
  readonly own: number;
  /** How many hits of each list were fused to make it; 0 in a list that a query found. */
  readonly window: number;
}

/** A list of a tree, best hit first, and the lists that it is made from. */
export interface Branch {
  readonly hits: readonly BranchHit[];
  /** Whether reading on would find no more hits. */
  readonly ends: boolean;
  readonly inputs: readonly Branch[];
  /** The list as it was before its hits were scored again, if they were. */
  readonly before?: Branch;
}

/** What a list is made from: those that queries found, how far these were read, and the scores that a model gives to documents. */
export interface Sources {
  readonly lists: ReadonlyMap<Leaf, readonly Ranked[]>;
  readonly longest: number;
  /** The model's scores of documents, in their order. */
  readonly scores: (rerank: Rerank, hits: readonly Ranked[]) => Promise<readonly number[]>;
  /** The places of the hits that a retriever keeps, in ascending order. */
  readonly different: (retriever: Json, hits: readonly Ranked[]) => Promise<readonly number[]>;
  /** Hits of a list with the scores that the queries of a section give them, and in the order of these. */
  readonly rescored: (section: Span, hits: readonly Ranked[]) => Promise<readonly Ranked[]>;
  /** Thousands of hits take long: between the steps, others may have their turn. */
  readonly turns: Turns;
}

/** The lists of a tree made one; those of a window of the server's own choice are read on for pages behind it. */
export async function branchOf(node: Node, sources: Sources, wanted: number): Promise<Branch> {
  await sources.turns.next();
  if (node.kind === 'leaf') {
    const hits = asFound(sources.lists.get(node) ?? []);
    return { hits, ends: hits.length < sources.longest, inputs: [] };
  }
  const sizes = windows(node.window, wanted);
  const depth = depthOf(node.window, wanted);
  const inputs: Branch[] = [];
  for (const { node: below, rescore } of node.inputs) {
    const list = await branchOf(below, sources, depth);
    if (rescore === undefined) inputs.push(list);
    else inputs.push({ ...list, hits: asFound(await sources.rescored(rescore, list.hits)), before: list });
  }
  const [first] = inputs;
  const read = first?.hits.slice(0, depth) ?? [];
  let pages: Pages;
  if (node.diversify !== undefined) {
    const kept = await sources.different(node.diversify, read);
    pages = {
      hits: asFound(
        kept.flatMap((at) => read.slice(at, at + 1)),
        depth,
      ),
      isCut: false,
    };
  } else if (node.rerank !== undefined) pages = await rerankedPages(node.rerank, read, sizes, sources);
  else pages = await fusedPages(node, inputs, sizes, sources.turns);
  const most = node.window.given ? depth : (node.window.most ?? MAX_WINDOW);
  const ends = depth >= most || (!pages.isCut && inputs.every((it) => it.ends && it.hits.length <= depth));
  return { hits: pages.hits, ends, inputs };
}

function asFound(hits: readonly Ranked[], window = 0): readonly BranchHit[] {
  return hits.map(({ key, score }) => ({ key, score, own: score, window }));
}

interface Pages {
  readonly hits: readonly BranchHit[];
  /** Whether the last window holds documents that got no place from it. */
  readonly isCut: boolean;
}

async function fusedPages(
  fusion: Fusion,
  inputs: readonly Branch[],
  sizes: readonly number[],
  turns: Turns,
): Promise<Pages> {
  const hits: BranchHit[] = [];
  const placed = new Set<string>();
  let isCut = false;
  for (const window of sizes) {
    // Scores of a wider window may be higher than the last of the page before; they are shown as they follow.
    let least = hits.at(-1)?.score ?? Infinity;
    await turns.next();
    const all = fused(fusion, within(fusion, inputs, window));
    await turns.next();
    const fresh = placed.size === 0 ? all : all.filter(({ key }) => !placed.has(key));
    const room = window - placed.size;
    isCut = fresh.length > room;
    for (const { key, score } of fresh.slice(0, Math.max(room, 0))) {
      placed.add(key);
      if (fusion.minScore !== undefined && score < fusion.minScore) continue;
      least = Math.min(least, score);
      hits.push({ key, score: least, own: score, window });
    }
  }
  return { hits, isCut };
}

/** A list of a fusion, cut to a window. */
interface CutList extends Pick<Input, 'weight' | 'normalizer' | 'maps'> {
  readonly hits: readonly Ranked[];
}

/** The lists of a fusion, each cut to a window. */
export function within(fusion: Fusion, inputs: readonly Branch[], window: number): readonly CutList[] {
  return fusion.inputs.map((input, at) => ({ ...input, hits: inputs[at]?.hits.slice(0, window) ?? [] }));
}

/** Lists fused as a fusion says. */
export function fused({ method, indexOf }: Fusion, lists: readonly CutList[]): readonly Ranked[] {
  if (indexOf === undefined) return fuseLists(method, lists);
  return fuseCalibrated(
    indexOf,
    lists.map(({ hits, weight, maps = [] }) => ({ hits, weight, maps })),
  );
}

/** The hits of each window in the order of their new scores, behind those of the window before. */
async function rerankedPages(
  rerank: Rerank,
  first: readonly BranchHit[],
  sizes: readonly number[],
  { scores }: Sources,
): Promise<Pages> {
  const given = await scores(rerank, first);
  const scored = first.map(({ key }, at) => ({ key, score: given[at] ?? 0 }));
  const hits: BranchHit[] = [];
  let [start, least] = [0, Infinity];
  for (const window of sizes) {
    const { minScore = -Infinity } = rerank;
    const page = scored.slice(start, window).filter(({ score }) => score >= minScore);
    for (const { key, score } of page.sort((one, other) => other.score - one.score)) {
      const own = positive(score);
      least = Math.min(least, own);
      hits.push({ key, score: least, own, window });
    }
    start = window;
  }
  return { hits, isCut: false };
}

/** Elasticsearch's score for that of a model: never negative, and in the same order. */
function positive(score: number): number {
  return Math.fround(Math.fround(Math.max(score, 0)) + Math.fround(Math.min(Math.exp(score), 1)));
}
