/**
 * The protocol of a measured program: it prints `ready`, then answers each line of its input with one line of JSON, and ends
 * with its input. Thus a program is loaded and connected before anything is timed, and several programs can take turns.
 */

import { createInterface } from "node:readline";

/** Runs `round` for each line of standard input until that ends. */
export async function answerRounds(round: (line: string) => Promise<unknown>): Promise<void> {
  console.log("ready");
  for await (const line of createInterface({ input: process.stdin })) {
    console.log(JSON.stringify(await round(line)));
  }
}
