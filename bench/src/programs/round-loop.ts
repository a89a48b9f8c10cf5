/**
 * How a measured program speaks with the bench: it prints `ready`, then answers each line of its input with one line
 * of JSON, and ends with its input. So a program is loaded and connected before anything is timed, and two of them can
 * take turns.
 */

import { createInterface } from "node:readline";

/** Runs `round` for each line of standard input until that ends. */
export async function answerRounds(round: (line: string) => Promise<unknown>): Promise<void> {
  console.log("ready");
  for await (const line of createInterface({ input: process.stdin })) {
    console.log(JSON.stringify(await round(line)));
  }
}
