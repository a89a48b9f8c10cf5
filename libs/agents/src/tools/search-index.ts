/**
 * An index that finds texts by their words, by BM25 (Robertson and Zaragoza 2009) as MiniSearch computes it. The tool `search`
 * and environments with a search bar use it.
 */

import MiniSearch from "minisearch";

/** What can be found. */
export interface Passage {
  readonly title: string;
  readonly text: string;
}

/**
 * The usual constants of BM25: k says how fast repeated words saturate, b how strongly long passages are penalised. A positive
 * d would add a bonus for every word that occurs (BM25+).
 */
const BM25 = { k: 1.2, b: 0.75, d: 0 };

/** Finds passages, or records that are passages and hold more. */
export class SearchIndex<Found extends Passage = Passage> {
  readonly #passages: readonly Found[];
  /** The index of titles and texts; a passage is identified by its position in the corpus. */
  readonly #index = new MiniSearch<Passage & { readonly id: number }>({
    fields: ["words"],
    extractField: (passage, field) => (field === "id" ? passage.id : `${passage.title} ${passage.text}`),
    tokenize: wordsOf,
    processTerm: (word) => word,
    searchOptions: { bm25: BM25 },
  });

  constructor(passages: readonly Found[]) {
    this.#passages = passages;
    for (const [id, { title, text }] of passages.entries()) this.#index.add({ title, text, id });
  }

  /** The passages that fit best, best first; passages with equal scores are in the order of the corpus. */
  search(query: string, maxResults: number): Found[] {
    const words = [...new Set(wordsOf(query))].join(" ");
    return this.#index
      .search(words)
      .sort((a, b) => b.score - a.score || a.id - b.id)
      .slice(0, maxResults)
      .flatMap(({ id }) => this.#passages[id] ?? []);
  }
}

function wordsOf(text: string): string[] {
  return text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [];
}
