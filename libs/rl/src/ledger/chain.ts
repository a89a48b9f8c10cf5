/**
 * The ledger as a chain: what a row holds, how it is digested, and how a chain is checked.
 *
 *   content digest = SHA-256(content)            what the step did; two equal runs have the same, however often they were killed
 *   row digest     = SHA-256(format, previous row digest, content digest, SHA-256(rest))
 *
 * `rest` is what may differ between two equal runs: the run's name, owners, attempts, positions, times. Both texts are
 * canonical JSON, made anew from the tables by whoever checks. A row that is changed, removed or put in from elsewhere no longer fits.
 * The chain shows a change by somebody who does not compute the digests again; its last digest, kept elsewhere, shows any.
 */

import { createHash } from "node:crypto";
import { canonicalJson } from "./canonical-json.ts";

/** Changed with anything that changes a digest. Rows of earlier formats stay as they are. */
export const CHAIN_FORMAT = 1;

/** A rollout that a step trained; digests are hexadecimal SHA-256. */
export interface ChainedRollout {
  /** `<split>.<step>.<task>.<index>`, with `/<role>` where it is the part of a role. */
  readonly slot: string;
  readonly outcome: string;
  readonly reward: number;
  readonly advantage: number;
  readonly turnAdvantages: readonly number[] | null;
  /** Of the advantages of single tokens, and of what a critic was to predict; empty = there are none. */
  readonly tokenAdvantages: string;
  readonly tokenReturns: string;
  readonly sampleCount: number;
  readonly sampledTokens: number;
  readonly lowestVersion: number | null;
  readonly highestVersion: number | null;
  /** Of what the model was shown: all token ids that it did not sample. */
  readonly prompt: string;
  /** Of all token ids with their masks. */
  readonly tokens: string;
  /** Of the log-probabilities when they were sampled. */
  readonly logprobs: string;
}

/** A rollout that a step left out. */
export interface ChainedLeftOut {
  readonly slot: string;
  readonly outcome: string;
  /** See LeftOutWhy of the trainer. */
  readonly why: string;
}

/** What a step did. */
export interface StepContent {
  readonly version: number;
  /** Of the resolved run file without name and tokenizer. */
  readonly settings: string;
  readonly tokenizer: string;
  /** What the bits of the weights depend on beside the run, as the engine names it. */
  readonly arithmetic: string;
  /** Digest of the weights before the step, empty for a run's first version, and after it. */
  readonly before: string;
  readonly after: string;
  readonly trained: readonly ChainedRollout[];
  readonly leftOut: readonly ChainedLeftOut[];
}

/** Digests of a row, as its commit wrote them. */
export interface RowDigests {
  /** 0 = it was committed before there was a chain. */
  readonly format: number;
  /** That of the row before; empty for a run's first row. */
  readonly previous: string;
  readonly content: string;
  readonly row: string;
}

/** A row as it is read: both texts from the tables of now, and the digests of the commit. */
export interface ChainRow extends RowDigests {
  readonly version: number;
  readonly contentJson: string;
  readonly restJson: string;
}

export function sha256(data: string | Uint8Array): string {
  return createHash("sha256").update(data).digest("hex");
}

/** The digests of a row. */
export function digestsOf(contentJson: string, restJson: string, previous: string): RowDigests {
  const content = sha256(contentJson);
  const row = sha256(canonicalJson({ format: CHAIN_FORMAT, previous, content, rest: sha256(restJson) }));
  return { format: CHAIN_FORMAT, previous, content, row };
}

/** What is wrong with a chain, from its first wrong row on. */
export interface ChainProblem {
  readonly version: number;
  readonly problem: string;
}

/** What a check found. */
export interface CheckedChain {
  /** Rows that have digests. */
  readonly checked: number;
  /** Versions from before there was a chain. */
  readonly unchained: readonly number[];
  /** The first row that does not verify; undefined = all do. */
  readonly first: ChainProblem | undefined;
  /** Digest of the last row that was checked; empty = there is none. */
  readonly head: string;
}

/** Checks rows as they come, in the order of their versions. */
export class ChainCheck {
  readonly #unchained: number[] = [];
  #checked = 0;
  #last: { readonly version: number; readonly row: string; readonly after: string } | undefined;
  #first: ChainProblem | undefined;

  add(row: ChainRow): void {
    if (this.#first !== undefined) return;
    const problem = this.#problemOf(row);
    if (problem !== undefined) this.#first = { version: row.version, problem };
    else if (row.format === 0) this.#unchained.push(row.version);
    else this.#checked++;
  }

  result(): CheckedChain {
    return {
      checked: this.#checked,
      unchained: this.#unchained,
      first: this.#first,
      head: this.#last?.row ?? "",
    };
  }

  #problemOf(row: ChainRow): string | undefined {
    if (row.format === 0) {
      return this.#last === undefined
        ? undefined
        : `the row has no digests, though the row of version ${this.#last.version} before it has some`;
    }
    if (row.format !== CHAIN_FORMAT) {
      return `the row is of format ${row.format}, and this release knows formats up to ${CHAIN_FORMAT}`;
    }
    const found = digestsOf(row.contentJson, row.restJson, row.previous);
    if (found.content !== row.content) return "what the row says of the step is not what was committed";
    if (found.row !== row.row) return "the row is not the one that was committed";
    const content = JSON.parse(row.contentJson) as StepContent;
    if (content.version !== row.version) return `the row says that it is of version ${content.version}`;
    const last = this.#last;
    if (last === undefined) {
      const isFirst = row.previous === "" && (this.#unchained.length > 0 || content.before === "");
      if (!isFirst) return "the rows before it are missing";
    } else {
      if (row.version !== last.version + 1) return `the row after version ${last.version} is missing`;
      if (row.previous !== last.row) return `it does not follow the row of version ${last.version}`;
      if (content.before !== last.after) {
        return `the step began with other weights than those that version ${last.version} ended with`;
      }
    }
    this.#last = { version: row.version, row: row.row, after: content.after };
    return undefined;
  }
}
