/** The files that `hone new agent` writes: an agent with a tool of its own, its test, rows and a run file. */

import { readFile } from "node:fs/promises";
import { join } from "node:path";

/** Names of agents: words of lower-case letters and digits. */
export const AGENT_NAME = /^[a-z][a-z0-9]*(_[a-z0-9]+)*$/;

/** Templates with placeholders for the name. They end in `.txt`, because they are not code of this program. */
const TEMPLATES = ["agent.ts", "agent.test.ts", "run.yaml"] as const;
const FOLDER = join(import.meta.dirname, "agent");

/** @param folder where the files will be, relative to the project folder. @returns the text of each file. */
export async function agentFiles(name: string, folder: string): Promise<Readonly<Record<string, string>>> {
  const texts = await Promise.all(
    TEMPLATES.map(async (file) => {
      const text = await readFile(join(FOLDER, `${file}.txt`), "utf8");
      const filled = text
        .replaceAll("AGENT_NAME", name)
        .replaceAll("RUN_NAME", name.replaceAll("_", "-"))
        .replaceAll("FOLDER", folder.replaceAll("\\", "/"));
      return [file, filled] as const;
    }),
  );
  return {
    ...Object.fromEntries(texts),
    "agent.yaml": "# The agent's own keys, those of configSchema in agent.ts.\nmaxToolAnswerTokens: 64\n",
    "rows.jsonl": rows(),
  };
}

const WORDS = ["lake", "ice", "frozen", "goal", "hole", "north", "river", "stone"];

function rows(): string {
  return WORDS.map((word) => {
    const truth = [...word].reverse().join("");
    const row = {
      data_source: "words",
      prompt: [{ role: "user", content: word }],
      reward_model: { style: "rule", ground_truth: truth },
    };
    return `${JSON.stringify(row)}\n`;
  }).join("");
}
