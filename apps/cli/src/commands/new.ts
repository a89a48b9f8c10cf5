/** `hone new agent NAME`: writes a working agent with its test, to start from. */

import { existsSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { join, relative, resolve } from "node:path";
import { honeCommand } from "../define.ts";
import { UsageError } from "../errors.ts";
import { shownPath, userFolder } from "../project.ts";
import { AGENT_NAME, agentFiles } from "../scaffold/agent-files.ts";

export const newCommand = honeCommand({
  name: "new",
  description: "Write a new agent into a folder of its own: code, test, rows and run file",
  args: {
    kind: { type: "positional", required: true, description: "What to write: agent", valueHint: "agent" },
    name: {
      type: "positional",
      required: true,
      description: "Name of the agent and of its folder, such as word_smith",
      valueHint: "NAME",
    },
  },
  run: async ({ terminal, project }, { kind, name }) => {
    if (kind !== "agent")
      throw new UsageError(`hone new cannot make a ${kind}; it can make an agent: hone new agent ${name}`);
    if (!AGENT_NAME.test(name)) {
      throw new UsageError(
        `the name ${name} is not allowed; it must be words of a-z and 0-9 joined by _, such as word_smith`,
      );
    }
    const folder = resolve(userFolder(), name);
    const below = relative(project.folder, folder);
    if (below.startsWith("..")) {
      throw new UsageError(
        `the new folder ${folder} is outside of the project folder ${project.folder}; call hone new in a folder below it`,
      );
    }
    if (existsSync(folder)) {
      throw new UsageError(
        `the folder ${shownPath(folder)} exists already; choose another name or remove it`,
      );
    }
    await mkdir(folder, { recursive: true });
    for (const [file, text] of Object.entries(await agentFiles(name, below)))
      await writeFile(join(folder, file), text);
    terminal.line(`${shownPath(folder)}: agent.ts, agent.test.ts, agent.yaml, rows.jsonl, run.yaml`);
    terminal.line(`test it:   node --test ${shownPath(join(folder, "agent.test.ts"))}`);
    terminal.line(`check it:  npm run hone -- validate ${shownPath(join(folder, "run.yaml"))}`);
    terminal.line(`play it:   npm run hone -- debug ${shownPath(join(folder, "run.yaml"))}`);
    terminal.line(`train it:  npm run hone -- run ${shownPath(join(folder, "run.yaml"))}`);
    return 0;
  },
});
