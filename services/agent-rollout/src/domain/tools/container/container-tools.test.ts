import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import path from "node:path";
import { after, before, beforeEach, describe, test } from "node:test";
import { AgentCatalog } from "@hone/agents";
import { CodeGate } from "@hone/config";
import { Outcome } from "@hone/core";
import { ContainerHost } from "@hone/sandbox";
import { FakeEngine } from "@hone/sandbox/testing";
import { ChatRenderer } from "@hone/tokenizer";
import { chatmlTokenizer, TOOL_TEMPLATE } from "@hone/tokenizer/testing";
import "../../built-ins.ts";
import type { RolloutRecord } from "../../rollout-job.ts";
import { rowJob, runJob, WritingPolicy } from "../../testing/row-rollouts.ts";
import { MAX_FILE_BYTES } from "./container-files.ts";

/* The runtime is a fake that speaks Docker's API; libs/sandbox/src/containers/containers.int.test.ts tries a real one. */

const renderer = new ChatRenderer(chatmlTokenizer(TOOL_TEMPLATE));
const IMAGE = "test/image:1";
const call = (name: string, args: unknown) =>
  `<tool_call>\n${JSON.stringify({ name, arguments: args })}\n</tool_call>`;
const sh = (command: string) => call("shell", { command });

describe("the tools of a container", { timeout: 120_000 }, () => {
  let engine: FakeEngine;
  let containers: ContainerHost;
  before(async () => {
    engine = await FakeEngine.start();
    containers = new ContainerHost({
      socketPath: engine.socketPath,
      images: ["test/*"],
      owner: "test",
      maxContainers: 4,
      maxMemoryMib: 2_048,
      maxCpus: 2,
    });
  });
  beforeEach(() => {
    engine.interfere = () => undefined;
    engine.started.length = 0;
  });
  after(() => engine[Symbol.asyncDispose]());

  async function play(
    answers: readonly string[],
    config: Record<string, unknown> = { image: IMAGE },
    overrides: Parameters<typeof rowJob>[2] = {},
    row: Record<string, unknown> = {},
  ): Promise<{ record: RolloutRecord; told: string[] }> {
    const policy = new WritingPolicy(renderer, ...answers, "done");
    const agent = {
      tools: [{ name: "container", config }],
      toolAttempts: 2,
      maxToolAnswerTokens: 4_000,
      ...overrides.config,
    };
    const job = rowJob(
      "tool_agent",
      { prompt: "Repair it.", ...row },
      {
        limits: { maxTurns: 12, maxContextTokens: 60_000, deadlineMs: 60_000, maxAttempts: 2 },
        ...overrides,
        config: agent,
      },
    );
    const record = await runJob(job, renderer, policy, { provided: { containers } });
    const told = [...(policy.prompts.at(-1) ?? "").matchAll(/<tool_response>\n(.*?)\n<\/tool_response>/gs)];
    return { record, told: told.map(([, text]) => text ?? "") };
  }

  test("share one container, which is removed with the attempt, and record its image", async () => {
    const { record, told } = await play([
      call("write_file", { path: "src/main.py", content: "print('naïve')\nprint(2)\n" }),
      sh("cat src/main.py | wc -l; exit 4"),
      call("edit_file", { path: "src/main.py", old_text: "print(2)", new_text: "print(3)" }),
      call("read_file", { path: "src/main.py" }),
      call("read_file", { path: "src/main.py", from_line: 2, num_lines: 1 }),
      sh("true"),
    ]);
    assert.equal(record.outcome, Outcome.completed);
    assert.deepEqual(told, [
      "Wrote src/main.py.",
      "2\n[exit code 4]",
      "Changed src/main.py.",
      "print('naïve')\nprint(3)\n",
      "print(3)",
      "(no output)",
    ]);
    assert.deepEqual(record.metadata.materials, {
      container: [`image ${IMAGE} ${engine.images.get(IMAGE)}`],
    });
    assert.equal(engine.containers.size, 0);
    assert.deepEqual(new Set(engine.started.slice(1).map(({ user }) => user)), new Set(["65534:65534"]));
  });

  test("the model's mistakes are answers: commands that fail or take too long, files that are not there", async () => {
    const { record, told } = await play(
      [
        sh("no-such-program"),
        sh("echo begun; sleep 60"),
        call("read_file", { path: "absent" }),
        call("write_file", { path: "a", content: "x\nx\n" }),
        call("edit_file", { path: "a", old_text: "x", new_text: "y" }),
        call("edit_file", { path: "a", old_text: "z", new_text: "y" }),
        call("write_file", { path: "/proc/none/b", content: "x" }),
        call("read_file", { path: "--help" }),
      ],
      { image: IMAGE, timeMs: 1_500 },
    );
    assert.equal(record.outcome, Outcome.completed);
    assert.match(told[0] ?? "", /not found\n\[exit code 127\]/);
    assert.equal(
      told[1],
      "begun\n[took longer than 1500 ms and was ended, with everything else that ran in the container]",
    );
    assert.match(told[2] ?? "", /^Error: absent cannot be read: .*No such file/);
    assert.match(told[4] ?? "", /occurs more than once/);
    assert.match(told[5] ?? "", /does not occur/);
    assert.match(told[6] ?? "", /^Error: \/proc\/none\/b cannot be written: /);
    assert.match(told[7] ?? "", /^Error: --help cannot be read: .*No such file/);
    assert.deepEqual(record.failedAttempts, []);
  });

  test("long output keeps its first and its last part, and large files are written in parts", async () => {
    const long = "é".repeat(150_000);
    const { told } = await play(
      [
        sh("yes ab | head -c 100000; echo end"),
        call("write_file", { path: "long", content: long }),
        sh("wc -c < long; cksum < long"),
        sh(`head -c ${MAX_FILE_BYTES + 1} /dev/zero > zeros`),
        call("read_file", { path: "zeros" }),
      ],
      { image: IMAGE, maxOutputBytes: 400 },
      {
        limits: { maxTurns: 12, maxContextTokens: 900_000, deadlineMs: 60_000, maxAttempts: 1 },
        sampling: { temperature: 1, topP: 1, topK: 0, maxNewTokens: 400_000 },
      },
    );
    assert.match(told[0] ?? "", /^(ab\n)+a?b?\n?\n\[\.\.\. 99604 bytes cut \.\.\.\]\n[ab\n]*end$/);
    assert.match(told[2] ?? "", /^300000\n/);
    assert.match(told[4] ?? "", /more than 1048576 bytes/);
  });

  test("a container that a command made unusable is replaced, and the model is told", async () => {
    let isJammed = false;
    engine.interfere = (method, at) => {
      const [container] = engine.containers.values();
      if (method !== "POST" || !at.endsWith("/exec") || container === undefined || isJammed) return undefined;
      if (engine.started.length < 3) return undefined;
      isJammed = true;
      engine.end(container, true);
      return undefined;
    };
    const { record, told } = await play([
      sh("echo kept > a; echo one"),
      sh("cat a; echo two"),
      sh("ls; echo three"),
    ]);
    assert.equal(record.outcome, Outcome.completed);
    assert.deepEqual(told, [
      "one",
      "kept\ntwo",
      "[the container had to be replaced: it used more memory than it may. Its files are as at the start]",
    ]);
    assert.equal(engine.containers.size, 0);
  });

  test("a failure of the runtime makes the attempt again and is never scored; no command runs twice", async () => {
    engine.interfere = (_, at) => (at.endsWith("/create") ? 500 : undefined);
    const unable = await play([sh("true"), sh("true")]);
    assert.equal(unable.record.outcome, Outcome.infraFailed);
    assert.match(unable.record.reason, /Cannot use containers of .*status 500/);
    assert.equal(unable.record.failedAttempts.length, 1);

    engine.interfere = () => undefined;
    let numLost = 0;
    const commands = () => engine.started.map(({ command }) => command.at(-1));
    engine.interfere = (method, at) => {
      // The container is gone as soon as the first attempt's command has begun.
      if (method === "GET" && at.startsWith("/exec/") && commands().includes("echo once") && numLost === 0) {
        numLost++;
        engine.containers.clear();
        return 404;
      }
      return undefined;
    };
    // One answer for each attempt.
    const { record } = await play([sh("echo once"), sh("echo once")]);
    assert.equal(record.outcome, Outcome.completed);
    assert.equal(record.failedAttempts.length, 1);
    assert.match(record.failedAttempts[0] ?? "", /is gone that nobody here removed/);
    assert.equal(commands().filter((command) => command === "echo once").length, 2, "once in each attempt");
  });

  test("a row names its image, among those that the operator allows", async () => {
    const rowOf = (image: unknown) => ({
      extra_info: { tools_kwargs: { container: { create_kwargs: { image } } } },
    });
    engine.images.set("test/other:2", `sha256:${"2".repeat(64)}`);
    const { record } = await play([sh("true")], {}, {}, rowOf("test/other:2"));
    assert.deepEqual(record.metadata.materials, {
      container: [`image test/other:2 sha256:${"2".repeat(64)}`],
    });
    for (const image of ["evil/image", "test/../evil", 7, undefined]) {
      const refused = await play([sh("true")], {}, {}, rowOf(image));
      assert.equal(refused.record.outcome, Outcome.infraFailed, String(image));
      assert.match(refused.record.reason, /image/);
      assert.deepEqual(refused.record.failedAttempts, [], "a row stays as it is");
    }
    assert.equal(engine.started.length, 2);
  });

  test("what the operator does not allow is refused before a run starts, and nothing is asked for it", async () => {
    engine.interfere = () => assert.fail("the runtime was asked");
    const check = (config: unknown, host: ContainerHost | undefined = containers) =>
      new AgentCatalog({
        filesFolder: ".",
        gate: new CodeGate({ filesFolder: "." }),
        containers: host,
      }).check({
        name: "tool_agent",
        configJson: JSON.stringify({ tools: [{ name: "container", config }] }),
      });
    for (const [config, told] of [
      [{ image: "evil/image" }, /`tools\.0\.config\.image` must be one that the operator allows: test\/\*/],
      [{ image: IMAGE, memoryMib: 4_096 }, /`tools\.0\.config\.memoryMib` must be at most 2048/],
      [{ image: IMAGE, cpus: 3 }, /`tools\.0\.config\.cpus` must be at most 2/],
      [{ image: IMAGE, user: "0:0" }, /`tools\.0\.config\.user` must be numbers above 0/],
      [{ image: IMAGE, user: "root" }, /`tools\.0\.config\.user`/],
      [{ image: IMAGE, workFolder: "/" }, /`tools\.0\.config\.workFolder`/],
      [{ image: IMAGE, netwrk: "host" }, /`tools\.0\.config\.netwrk` must be/],
    ] as const) {
      await assert.rejects(check(config), told);
    }
    await check({ image: IMAGE });
    await check({});
    const none = new AgentCatalog({ filesFolder: ".", gate: new CodeGate({ filesFolder: "." }) });
    await assert.rejects(
      none.check({ name: "tool_agent", configJson: '{"tools":["container"]}' }),
      /HONE_CONTAINER_SOCKET/,
    );
  });

  test("files that were written are in the container's folder and nowhere else", async () => {
    let folder = "";
    engine.interfere = () => {
      const [container] = engine.containers.values();
      if (container !== undefined) folder = container.folder;
      return undefined;
    };
    await play([call("write_file", { path: "here", content: "text" }), sh("cat here")]);
    assert.equal(await readFile(path.join(folder, "here"), "utf8"), "text");
  });
});
