import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { writeFile } from "node:fs/promises";
import path from "node:path";
import { describe, test } from "node:test";
import { AgentCatalog, agentOf } from "@hone/agents";
import { playAgent } from "@hone/agents/testing";
import { CodeGate } from "@hone/config";
import { PackageFolder } from "@hone/sandbox";
import { makeWheel } from "@hone/sandbox/testing";
import { temporaryFolder } from "@hone/testing";
import { ChatRenderer } from "@hone/tokenizer";
import { chatmlTokenizer, TOOL_TEMPLATE } from "@hone/tokenizer/testing";
import "../built-ins.ts";
import { rowJob, runJob, WritingPolicy } from "../testing/row-rollouts.ts";

const write = (code: string) =>
  `<tool_call>\n${JSON.stringify({ name: "python", arguments: { code } })}\n</tool_call>`;
const ROW = { prompt: "What is 6 * 7?" };

describe("the tool python", { timeout: 240_000 }, () => {
  const play = (config: Record<string, unknown>, ...codes: string[]) =>
    playAgent(agentOf("python_math") ?? assert.fail("no agent"), {
      row: ROW,
      config: { tools: [{ name: "python", config }], maxToolAnswerTokens: 2_000 },
      answers: [...codes.map(write), "\\boxed{42}"],
    });
  const told = (prompts: readonly string[]) =>
    prompts
      .slice(1)
      .map((prompt) => [...prompt.matchAll(/<tool_response>\n(.*?)\n<\/tool_response>/gs)].at(-1)?.[1] ?? "");

  test("shows the model what its code printed, what it raised, and what stopped it", async () => {
    const { prompts, turns } = await play(
      { timeMs: 3_000 },
      "print(6 * 7)",
      "6 * 7",
      "x = 1",
      "import os\nos.fork()",
      "while True: pass",
      "x = []\nwhile True: x.append(bytearray(10 ** 7))",
    );
    const [printed, value, nothing, fork, loop, memory] = told(prompts);
    assert.deepEqual([printed, value, nothing], ["42", "42", "(no output)"]);
    assert.match(fork ?? "", /OSError/);
    assert.equal(loop, "Error: the code took longer than 3000 ms and was stopped.");
    assert.match(memory ?? "", /MemoryError/);
    assert.equal(turns.at(-1)?.responseText, "\\boxed{42}");
  });

  test("keeps names between the calls of a rollout only if its configuration says so", async () => {
    const codes = ["x = 40", "x += 2\nprint(x)"] as const;
    assert.equal(told((await play({ keepsState: true }, ...codes)).prompts)[1], "42");
    assert.match(told((await play({}, ...codes)).prompts)[1] ?? "", /NameError/);
  });
});

describe("the tool execute_python", { timeout: 120_000 }, () => {
  test("answers with a return code and both outputs, as the rows of ChatLearn's mathcode expect", async () => {
    const calls = ["print(6 * 7)", "6 * 7", "1 / 0", "while True: pass"].map(
      (code) =>
        `<tool_call>\n${JSON.stringify({ name: "execute_python", arguments: { code } })}\n</tool_call>`,
    );
    const { prompts } = await playAgent(agentOf("mathcode") ?? assert.fail("no agent"), {
      row: ROW,
      config: { tools: [{ name: "execute_python", config: { timeMs: 2_000 } }] },
      answers: [...calls, "\\boxed{42}"],
    });
    const told = [...(prompts.at(-1) ?? "").matchAll(/<tool_response>\n(.*?)\n<\/tool_response>/gs)];
    const [printed, silent, failed, endless] = told.map(([, text]) => text ?? "");
    assert.equal(printed, "<returncode>0</returncode><stdout>42\n</stdout><stderr></stderr>");
    assert.equal(silent, "<returncode>0</returncode><stdout></stdout><stderr></stderr>");
    assert.match(
      failed ?? "",
      /^<returncode>1<\/returncode><stdout><\/stdout><stderr>Traceback.*ZeroDivisionError/s,
    );
    assert.match(endless ?? "", /^<returncode>-1<\/returncode>.*took longer than 2000 ms/s);
  });
});

describe("packages of the tool python", { timeout: 240_000 }, () => {
  const agents = (packages: string) =>
    new AgentCatalog({
      filesFolder: ".",
      gate: new CodeGate({ filesFolder: "." }),
      packages: new PackageFolder(packages),
    });
  const choice = (packages: unknown) => ({
    name: "python_math",
    configJson: JSON.stringify({ tools: [{ name: "python", config: { packages } }] }),
  });

  test("are those of the operator's folder; any other is refused with the key and the name that was meant", async () => {
    await using folder = await temporaryFolder("wheels");
    const file = "tiny-1.0-py3-none-any.whl";
    const wheel = makeWheel({ files: { "tiny.py": "def double(x): return 2 * x\n" } });
    await writeFile(path.join(folder.path, file), wheel);
    const catalog = agents(folder.path);
    try {
      for (const [packages, reason] of [
        [["tyny"], /`tools\.0\.config\.packages` must be one of tiny \(did you mean "tiny"\?\)/],
        [[{ name: "tiny", sha256: "0".repeat(64) }], /`tools\.0\.config\.packages` .*the run wants 0000/],
        [["../tiny"], /`tools\.0\.config\.packages\.0` must be the name of a package/],
      ] as const) {
        await assert.rejects(catalog.check(choice(packages)), reason);
      }
      await catalog.check(choice(["tiny"]));
    } finally {
      await catalog.close();
    }
    await assert.rejects(
      playAgent(agentOf("python_math") ?? assert.fail("no agent"), {
        row: ROW,
        config: { tools: [{ name: "python", config: { packages: ["tiny"] } }] },
        answers: ["done"],
      }),
      /HONE_SANDBOX_PACKAGES/,
    );
  });

  test("are imported by the model's code and recorded with their digests", async () => {
    await using folder = await temporaryFolder("wheels");
    const file = "tiny-1.0-py3-none-any.whl";
    const wheel = makeWheel({ files: { "tiny.py": "def double(x): return 2 * x\n" } });
    await writeFile(path.join(folder.path, file), wheel);
    const renderer = new ChatRenderer(chatmlTokenizer(TOOL_TEMPLATE));
    const policy = new WritingPolicy(renderer, write("import tiny\nprint(tiny.double(21))"), "42");
    const job = rowJob("tool_agent", ROW, {
      config: { tools: [{ name: "python", config: { packages: ["tiny"] } }] },
    });
    const record = await runJob(job, renderer, policy, {
      provided: { packages: new PackageFolder(folder.path) },
    });
    assert.match(policy.prompts[0] ?? "", /Standard library and tiny 1\.0, no files/);
    assert.match(policy.prompts[1] ?? "", /<tool_response>\n42\n/);
    const sha256 = createHash("sha256").update(wheel).digest("hex");
    assert.deepEqual(record.metadata.materials, { python: [`tiny 1.0 sha256:${sha256}`] });
  });
});
