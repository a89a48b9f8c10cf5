/**
 * The tool `search`: passages of a local corpus by BM25 (Robertson and Zaragoza 2009).
 *
 * The corpus is a JSON Lines file below HONE_FILES, each line with the text of a passage; it is read once, at the first
 * search, and stays in memory.
 */

import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import { createInterface } from "node:readline";
import { fileBelow } from "@hone/config";
import { InvalidInputError, parseJson } from "@hone/core";
import { z } from "zod";
import { defineTool, type Tool } from "./tool.ts";

export const searchConfigSchema = z.strictObject({
  /** JSON Lines file, below HONE_FILES. */
  corpus: z.string().min(1),
  /** Columns of a line that hold the passage and what it is called. */
  textColumn: z.string().min(1).default("text"),
  titleColumn: z.string().min(1).default("title"),
  /** Passages of one answer. */
  maxResults: z.number().int().min(1).max(100).default(3),
});
export type SearchConfig = z.output<typeof searchConfigSchema>;

/** BM25's usual constants: how fast repeated words saturate, and how much long passages pay for their length. */
const K1 = 1.2;
const B = 0.75;
/** More than this does not belong into the memory of every process. */
const MAX_PASSAGES = 2_000_000;
/** It is in memory, with its words. */
const MAX_CORPUS_BYTES = 2 * 1024 * 1024 * 1024;

export function makeSearch(config: SearchConfig, filesFolder: string): Tool {
  let index: Promise<SearchIndex> | undefined;
  const load = () => {
    index ??= readCorpus(config, filesFolder);
    index.catch(() => {
      index = undefined;
    });
    return index;
  };
  return defineTool({
    name: "search",
    description: "Searches a collection of texts and returns the passages that fit best.",
    parameters: {
      type: "object",
      properties: { query: { type: "string", description: "Words to look for" } },
      required: ["query"],
      additionalProperties: false,
    },
    async call({ query }) {
      const found = (await load()).search(String(query), config.maxResults);
      if (found.length === 0) return "No passage found.";
      return found
        .map(({ title, text }, i) => `[${i + 1}] ${title === "" ? "" : `${title}\n`}${text}`)
        .join("\n\n");
    },
  });
}

interface Passage {
  readonly title: string;
  readonly text: string;
}

/** Passages with their words turned round. */
export class SearchIndex {
  readonly #passages: readonly Passage[];
  readonly #postings = new Map<string, { readonly passages: number[]; readonly counts: number[] }>();
  readonly #lengths: Uint32Array;
  readonly #meanLength: number;

  constructor(passages: readonly Passage[]) {
    this.#passages = passages;
    this.#lengths = new Uint32Array(passages.length);
    for (const [index, { title, text }] of passages.entries()) this.#add(index, wordsOf(`${title} ${text}`));
    this.#meanLength = this.#lengths.reduce((sum, length) => sum + length, 0) / Math.max(1, passages.length);
  }

  /** The passages that fit best, best first; equals in the order of the corpus. */
  search(query: string, maxResults: number): Passage[] {
    const scores = new Map<number, number>();
    for (const word of new Set(wordsOf(query))) {
      const posting = this.#postings.get(word);
      if (posting === undefined) continue;
      const { passages, counts } = posting;
      const rarity = Math.log(1 + (this.#passages.length - passages.length + 0.5) / (passages.length + 0.5));
      for (const [i, passage] of passages.entries()) {
        const count = counts[i] ?? 0;
        const length = (this.#lengths[passage] ?? 0) / this.#meanLength;
        const score = (rarity * count * (K1 + 1)) / (count + K1 * (1 - B + B * length));
        scores.set(passage, (scores.get(passage) ?? 0) + score);
      }
    }
    return [...scores]
      .sort(([a, scoreA], [b, scoreB]) => scoreB - scoreA || a - b)
      .slice(0, maxResults)
      .flatMap(([passage]) => this.#passages[passage] ?? []);
  }

  #add(index: number, words: readonly string[]): void {
    this.#lengths[index] = words.length;
    for (const word of words) {
      let posting = this.#postings.get(word);
      if (posting === undefined) {
        posting = { passages: [], counts: [] };
        this.#postings.set(word, posting);
      }
      const last = posting.passages.length - 1;
      if (posting.passages[last] === index) posting.counts[last] = (posting.counts[last] ?? 0) + 1;
      else {
        posting.passages.push(index);
        posting.counts.push(1);
      }
    }
  }
}

function wordsOf(text: string): string[] {
  return text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [];
}

async function readCorpus(config: SearchConfig, filesFolder: string): Promise<SearchIndex> {
  const file = await fileBelow(filesFolder, config.corpus, "corpus");
  const { size } = await stat(file);
  if (size > MAX_CORPUS_BYTES) throw refusal(config, `at most ${MAX_CORPUS_BYTES} bytes`, `${size}`);
  const passages: Passage[] = [];
  let line = 0;
  for await (const json of createInterface({
    input: createReadStream(file),
    crlfDelay: Number.POSITIVE_INFINITY,
  })) {
    line++;
    if (json.trim() === "") continue;
    passages.push(passageOf(json, config, line));
    if (passages.length > MAX_PASSAGES) throw refusal(config, `at most ${MAX_PASSAGES} passages`, "more");
  }
  return new SearchIndex(passages);
}

function passageOf(json: string, config: SearchConfig, line: number): Passage {
  let row: unknown;
  try {
    row = parseJson(json);
  } catch {
    // Said below.
  }
  const column = (name: string): unknown =>
    typeof row === "object" && row !== null && Object.hasOwn(row, name) ? Reflect.get(row, name) : undefined;
  const text = column(config.textColumn);
  const title = column(config.titleColumn);
  if (typeof text !== "string") {
    const rule = `JSON objects with a text as "${config.textColumn}"`;
    throw refusal(config, rule, `${json.slice(0, 100)} on line ${line}`);
  }
  return { text, title: typeof title === "string" ? title : "" };
}

function refusal({ corpus }: SearchConfig, rule: string, value: string): InvalidInputError {
  return new InvalidInputError(`Cannot search ${corpus} as it must hold ${rule}: current value is ${value}`, {
    path: "corpus",
    allowed: rule,
  });
}
