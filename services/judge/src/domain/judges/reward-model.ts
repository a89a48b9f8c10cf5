/**
 * The judge `reward_model`: a trained classifier reads the conversation, which consists of the row's prompt and the answer.
 * It is rendered by the classifier's own chat template; without one, the texts are joined by an empty line.
 */

import { stat } from "node:fs/promises";
import path from "node:path";
import { fileBelow } from "@hone/config";
import { type ChatMessage, ChatRenderer, loadTokenizer, type Tokenizer } from "@hone/tokenizer";
import { z } from "zod";
import { JudgeError } from "../../errors.ts";
import type { Judge } from "../judge.ts";
import type { ConfigOf, JudgeParts } from "../judge-parts.ts";
import { type JudgedEpisode, solutionOf } from "../judged-episode.ts";
import { RewardModel } from "../reward-model/reward-model.ts";

/** The usual places of the model in its folder. */
const MODEL_FILES = ["model.onnx", path.join("onnx", "model.onnx")];

/** @throws {ConfigError | TokenizerLoadError | JudgeError | TerminalError} when folder, tokenizer or model cannot be used. */
export async function rewardModelJudge(
  config: ConfigOf<"reward_model">,
  { filesDir }: JudgeParts,
): Promise<Judge> {
  const { kind, label, squash, maxTokens } = config;
  const folder = await fileBelow(filesDir, config.path, "judge.path");
  const tokenizer = await loadTokenizer(folder);
  const tokensOf = conversationReader(tokenizer);
  const model = await RewardModel.open(await modelIn(folder, kind));
  return async function judgeByRewardModel(episode) {
    const tokenIds = tokensOf(messagesOf(episode)).slice(-maxTokens);
    const outputs = await model.outputsOf(tokenIds);
    const output = outputs[label];
    if (output === undefined) {
      throw new JudgeError(
        kind,
        `the reward model has ${outputs.length} outputs and no output ${label}; give a \`label\` below ${outputs.length}`,
      );
    }
    return squash === "sigmoid" ? 1 / (1 + Math.exp(-output)) : output;
  };
}

async function modelIn(folder: string, kind: string): Promise<string> {
  for (const name of MODEL_FILES) {
    const file = path.join(folder, name);
    const isThere = await stat(file).then(
      (found) => found.isFile(),
      () => false,
    );
    if (isThere) return file;
  }
  throw new JudgeError(kind, `the reward model's folder ${folder} has neither ${MODEL_FILES.join(" nor ")}`);
}

function conversationReader(tokenizer: Tokenizer): (messages: readonly ChatMessage[]) => readonly number[] {
  if (tokenizer.chatTemplate === undefined) {
    return (messages) => tokenizer.encode(messages.map(({ content }) => content).join("\n\n"));
  }
  const renderer = new ChatRenderer(tokenizer);
  return (messages) => renderer.renderEnded(messages).tokenIds;
}

const promptSchema = z.union([
  z.string().transform((content) => [{ role: "user" as const, content }]),
  z.array(z.object({ role: z.enum(["system", "user", "assistant", "tool"]), content: z.string() })),
]);

/** The row's prompt, or else the first turn's prompt, followed by the answer. */
function messagesOf(episode: JudgedEpisode): ChatMessage[] {
  const parsed = promptSchema.safeParse(episode.row?.prompt);
  const prompt = parsed.data ?? [{ role: "user" as const, content: episode.turns[0]?.promptText ?? "" }];
  return [...prompt, { role: "assistant", content: solutionOf(episode) }];
}
