/** Runs a Python program and waits for its end. */

import { spawn } from "node:child_process";

export async function runPython(
  command: string,
  script: string,
  environment: Readonly<Record<string, string>>,
): Promise<{ readonly code: number | null; readonly output: string }> {
  const env = { ...process.env, ...environment, PYTHONSAFEPATH: "1" };
  const child = spawn(command, [script], { env, stdio: ["ignore", "pipe", "pipe"] });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.on("data", (chunk) => {
      output += String(chunk);
    });
  }
  const code = await new Promise<number | null>((resolve) => child.once("close", resolve));
  return { code, output };
}
