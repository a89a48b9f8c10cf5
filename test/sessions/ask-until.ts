/** Asks a random model repeatedly, with another seed or prompt each time, until an answer is of the wanted kind. */

import assert from "node:assert/strict";

const MAX_TRIES = 60;

export async function askUntil<Answer>(
  what: string,
  ask: (attempt: number) => Promise<Answer>,
  isWanted: (answer: Answer) => boolean,
): Promise<Answer> {
  for (let attempt = 0; attempt < MAX_TRIES; attempt++) {
    const answer = await ask(attempt);
    if (isWanted(answer)) return answer;
  }
  return assert.fail(`no answer with ${what} in ${MAX_TRIES} tries`);
}

export async function collect<T>(stream: AsyncIterable<T>): Promise<T[]> {
  const items: T[] = [];
  for await (const item of stream) items.push(item);
  return items;
}
