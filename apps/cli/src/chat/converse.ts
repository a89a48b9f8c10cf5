/**
 * A conversation in the terminal: each line is a message, and its answer is printed as it is generated.
 *
 * Ctrl-C stops the answer that is being printed. Without one, Ctrl-C or the end of the input ends the conversation.
 */

import { createInterface } from "node:readline";
import type { Session } from "../session.ts";
import { type ChatTurn, type GatewayAddress, streamAnswer } from "./gateway-client.ts";

export interface ConverseOptions {
  readonly gateway: GatewayAddress;
  readonly model: string;
  readonly system: string | undefined;
  readonly maxTokens: number | undefined;
  readonly temperature: number | undefined;
}

const PROMPT = "> ";

export async function converse({ terminal, signal }: Session, options: ConverseOptions): Promise<void> {
  const { gateway, model, system, maxTokens, temperature } = options;
  const turns: ChatTurn[] = system === undefined ? [] : [{ role: "system", content: system }];
  const lines = createInterface({
    input: process.stdin,
    ...(terminal.isInteractive ? { output: process.stdout } : {}),
    prompt: PROMPT,
  });
  let answering: AbortController | undefined;
  const onInterrupt = () => {
    if (answering === undefined) lines.close();
    else answering.abort();
  };
  lines.on("SIGINT", onInterrupt);
  const onStop = () => lines.close();
  signal.addEventListener("abort", onStop, { once: true });
  try {
    if (terminal.isInteractive) lines.prompt();
    for await (const line of lines) {
      if (line.trim() !== "") {
        turns.push({ role: "user", content: line });
        answering = new AbortController();
        const answer = await printAnswer(AbortSignal.any([signal, answering.signal]));
        answering = undefined;
        turns.push({ role: "assistant", content: answer });
      }
      if (terminal.isInteractive) lines.prompt();
    }
    signal.throwIfAborted();
  } finally {
    signal.removeEventListener("abort", onStop);
    lines.close();
  }

  async function printAnswer(answerSignal: AbortSignal): Promise<string> {
    let answer = "";
    try {
      const asked = { maxTokens, temperature, signal: answerSignal };
      for await (const text of streamAnswer(gateway, model, turns, asked)) {
        answer += text;
        terminal.write(text);
      }
    } catch (error) {
      if (!answerSignal.aborted) throw error;
    }
    terminal.write("\n");
    return answer;
  }
}
