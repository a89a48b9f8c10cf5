import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { ConfigError } from "@hone/config";
import { startNats } from "@hone/testing";
import { type Environment, type InProcessService, startInProcess } from "../src/index.ts";
import { exampleService } from "./example-service.ts";

/* Services beside each other in this process, as a debugger has them. */

describe("startInProcess()", () => {
  let nats: Awaited<ReturnType<typeof startNats>>;
  const logs = new Map<string, string>();
  before(async () => {
    nats = await startNats();
  });
  after(() => nats?.stop());

  const start = (name: string, environment: Environment = {}): Promise<InProcessService> =>
    startInProcess(
      { ...exampleService, name },
      {
        environment: { HONE_NATS_URL: nats.url, HONE_INSTANCE_ID: `${name}-0`, ...environment },
        sink: { write: (line) => logs.set(name, (logs.get(name) ?? "") + line) },
        signal: new AbortController().signal,
      },
    );
  const hello = async ({ http }: InProcessService) => (await fetch(`${http.url}/hello`)).text();

  test("runs several, each with its own HTTP and log, and ends each when it is asked to", async () => {
    const services = await Promise.all(["one", "two"].map((name) => start(name)));
    await Promise.all(services.map(({ becameReady }) => becameReady));
    assert.deepEqual(await Promise.all(services.map(hello)), ["hello", "hello"]);
    const [one, two] = services as [InProcessService, InProcessService];
    await one.stop();
    assert.deepEqual(await one.ended, { isClean: true });
    await assert.rejects(hello(one));
    assert.equal(await hello(two), "hello");
    await two.stop();
    for (const name of ["one", "two"]) {
      assert.match(logs.get(name) ?? "", new RegExp(`"service":"${name}".*"message":"stopped"`));
    }
  });

  test("a service that cannot continue stops by itself, and the others continue", async () => {
    const [broken, sound] = await Promise.all([
      start("broken", { EXAMPLE_BEHAVIOUR: "fails" }),
      start("sound"),
    ]);
    await fetch(`${broken.http.url}/do`);
    assert.deepEqual(await broken.ended, { isClean: false });
    assert.equal(await hello(sound), "hello");
    await sound.stop();
  });

  test("one that does not drain within its time ends all the same, and not cleanly", async () => {
    const slow = await start("slow", { EXAMPLE_BEHAVIOUR: "drain hangs" });
    await slow.stop({ graceMs: 200 });
    assert.deepEqual(await slow.ended, { isClean: false });
  });

  test("wrong settings are reported with their variable", async () => {
    await assert.rejects(start("wrong", { EXAMPLE_BEHAVIOUR: "odd" }), (error) => {
      assert.ok(error instanceof ConfigError);
      assert.match(error.message, /EXAMPLE_BEHAVIOUR/);
      return true;
    });
  });
});
