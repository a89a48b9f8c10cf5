/**
 * Hosts a guessing game for the model: it names a digit, and is told whether the number is higher or lower.
 *
 * The same agent as guess.py, with Anthropic's Messages API; the client reads ANTHROPIC_BASE_URL and ANTHROPIC_API_KEY.
 */

import Anthropic from "@anthropic-ai/sdk";

interface Row {
  readonly prompt: string;
  readonly reward_model: { readonly ground_truth: string };
}

const MOST_GUESSES = 4;

function hint(guess: string, secret: number): string {
  if (!/^[0-9]$/.test(guess)) return "digit";
  return secret > Number(guess) ? "higher" : "lower";
}

async function main(): Promise<void> {
  const { row } = JSON.parse(process.env.HONE_TASK ?? "") as { row: Row };
  const secret = row.reward_model.ground_truth;
  const client = new Anthropic();
  const messages: Anthropic.MessageParam[] = [{ role: "user", content: row.prompt }];
  for (let guesses = 0; guesses < MOST_GUESSES; guesses++) {
    const { content } = await client.messages.create({ model: "policy", messages, max_tokens: 2 });
    const guess = content.map((block) => (block.type === "text" ? block.text : "")).join("");
    if (guess === secret) return;
    messages.push({ role: "assistant", content }, { role: "user", content: hint(guess, Number(secret)) });
  }
}

await main();
