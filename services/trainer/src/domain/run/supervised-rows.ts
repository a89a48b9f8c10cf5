/**
 * What the updates of a run imitate: conversations of a dataset, some for each update, in an order that the run's seed sets.
 */

import type { TokenizedSample } from "@hone/tokenizer";
import type { TrainingSample } from "@hone/train";
import type { Task } from "../rollouts/jobs.ts";
import type { SupervisedBatches } from "../step/supervised-batches.ts";
import { imitationSamples } from "../step/training-sample.ts";
import { conversationTokenizer, readConversations } from "./conversations.ts";
import type { RunContext } from "./run-context.ts";

type SupervisedContext = Pick<RunContext, "run" | "engine" | "folders" | "tasks" | "signal">;

export class SupervisedRows implements SupervisedBatches {
  readonly #context: SupervisedContext;
  #tokenize: Promise<(row: Task) => TokenizedSample[]> | undefined;

  constructor(context: SupervisedContext) {
    this.#context = context;
  }

  async check(): Promise<void> {
    const { supervised } = this.#context.run.config.algorithm;
    if (supervised !== undefined) await readConversations(this.#context, supervised.dataset);
  }

  async batches(step: number): Promise<readonly (readonly TrainingSample[])[] | undefined> {
    const { algorithm, trainer } = this.#context.run.config;
    const { supervised } = algorithm;
    if (supervised === undefined) return undefined;
    const { batchSize, coefficient, dataset } = supervised;
    const updates = trainer.epochs * trainer.minibatches;
    const count = updates * batchSize;
    const rows = await this.#context.tasks.supervised(dataset, (step - 1) * count, count);
    this.#tokenize ??= conversationTokenizer(this.#context);
    const tokenize = await this.#tokenize;
    return Array.from({ length: updates }, (_, update) => {
      const batch = rows.slice(update * batchSize, (update + 1) * batchSize);
      return imitationSamples(batch.flatMap(tokenize), coefficient);
    });
  }
}
