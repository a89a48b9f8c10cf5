/**
 * The conversations of a supervised dataset, tokenized: what the assistant says is learnt, everything else is context.
 *
 * All of them are read before the first update, so that a row that cannot be learnt is reported at once and not after hours.
 */

import { type FileSource, readConversationRow } from "@hone/config";
import { describeError, TerminalError } from "@hone/core";
import { ChatRenderer, loadTokenizer, type TokenizedSample, tokenizeConversation } from "@hone/tokenizer";
import type { Task } from "../rollouts/jobs.ts";
import { checkBounds, type SampleBounds } from "../step/trainable.ts";
import type { RunContext } from "./run-context.ts";

/** The most tokens of all rows together. Their ids and marks are held in memory, five bytes a token. */
const MAX_TOKENS = 100_000_000;

/** A row of the dataset cannot be learnt; the run cannot go on without it, as its file asks for all of them. */
export class UnusableRowError extends TerminalError {
  constructor(row: string, problem: string, options?: ErrorOptions) {
    super("UNUSABLE_ROW", `the row ${row} cannot be learnt: it ${problem}`, options);
  }
}

type ConversationContext = Pick<RunContext, "run" | "engine" | "folders" | "tasks" | "signal">;

/**
 * The samples of each row, in the order of the source.
 * @param onRead is called with the number of rows that were read and of all.
 * @throws {UnusableRowError} naming the first row that is wrong.
 */
export async function readConversations(
  { run, engine, folders, tasks, signal }: ConversationContext,
  source: FileSource,
  onRead: (done: number, total: number) => void = () => undefined,
): Promise<TokenizedSample[][]> {
  const tokenize = await conversationTokenizer({ run, engine, folders });
  const conversations: TokenizedSample[][] = [];
  let tokenCount = 0;
  for await (const { rows, total } of tasks.rows(source)) {
    signal.throwIfAborted();
    for (const row of rows) {
      const samples = tokenize(row);
      for (const { tokenIds } of samples) tokenCount += tokenIds.length;
      if (tokenCount > MAX_TOKENS) {
        const problem = `lies beyond the first ${MAX_TOKENS} tokens of the dataset, at ${tokenCount}; shorten the dataset`;
        throw new UnusableRowError(row.id, problem);
      }
      conversations.push(samples);
    }
    onRead(conversations.length, total);
  }
  return conversations;
}

/**
 * @returns what makes the samples of a row's conversation, as the run's model reads it.
 * @throws {UnusableRowError} where it is called with a row that cannot be learnt.
 */
export async function conversationTokenizer({
  run,
  engine,
  folders,
}: Pick<RunContext, "run" | "engine" | "folders">): Promise<(row: Task) => TokenizedSample[]> {
  const renderer = new ChatRenderer(await loadTokenizer(folders.absolute(folders.tokenizer)));
  const bounds = { vocabSize: engine.vocabSize, maxContextTokens: run.config.rollout.maxContextTokens };
  return (row) => samplesOf(row, renderer, bounds);
}

function samplesOf({ id, rowJson }: Task, renderer: ChatRenderer, bounds: SampleBounds): TokenizedSample[] {
  try {
    const read = readConversationRow(JSON.parse(rowJson) as Record<string, unknown>);
    if (read.kind === "wrong") throw new UnusableRowError(id, read.problem);
    const samples = tokenizeConversation(renderer, read.messages);
    for (const sample of samples) checkBounds(sample, bounds);
    return samples;
  } catch (error) {
    if (error instanceof UnusableRowError || !(error instanceof TerminalError)) throw error;
    throw new UnusableRowError(id, `must fit the run: ${describeError(error)}`, { cause: error });
  }
}
