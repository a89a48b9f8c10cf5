/** Tests of probes and grace periods: the arithmetic in the comments must agree with the figures. */

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { renderText } from "./helm.ts";
import { manifestsOf, objectOf, optionsOf, PROFILES, podOf, program, skip } from "./profiles.ts";

const SECONDS: Readonly<Record<string, number>> = { s: 1, min: 60 };

interface StatedProbe {
  readonly line: string;
  /** The comment above it. */
  readonly comment: string;
  readonly periodSeconds: number;
  readonly failureThreshold: number;
}

/** Every probe of a rendered text, with the comment above it. */
function probesOf(text: string): StatedProbe[] {
  const lines = text.split("\n");
  return lines.flatMap((line, index) => {
    const [, indent = ""] = /^(\s*)(?:startup|readiness|liveness)Probe:/.exec(line) ?? [];
    if (indent === "") return [];
    const above = lines.slice(0, index).reverse();
    const comment = above
      .slice(
        0,
        above.findIndex((each) => !/^\s*#/.test(each)),
      )
      .reverse();
    const below = lines.slice(index + 1);
    const isOther = (each: string) => !each.startsWith(`${indent} `);
    const block = below.slice(0, below.findIndex(isOther)).join("\n");
    const figure = (name: string) => Number(new RegExp(`${name}: (\\d+)`).exec(block)?.[1]);
    return [
      {
        line: `${index + 1}: ${line.trim()}`,
        comment: comment.join(" "),
        periodSeconds: figure("periodSeconds"),
        failureThreshold: figure("failureThreshold"),
      },
    ];
  });
}

describe("probes", { skip }, () => {
  for (const profile of PROFILES) {
    test(`of ${profile} allow the time that their comments say`, async () => {
      const probes = probesOf(await renderText(program, optionsOf(profile)));
      assert.ok(probes.length >= 18, `${probes.length} probes`);
      for (const { line, comment, periodSeconds, failureThreshold } of probes) {
        const said = /# (\d+) \* (\d+) s = (\d+) (s|min)\b/.exec(comment);
        assert.ok(said !== null, `the comment of ${line} has no arithmetic: ${comment}`);
        const [, times, period, sum, unit = ""] = said;
        assert.deepEqual([Number(times), Number(period)], [failureThreshold, periodSeconds], line);
        assert.equal(Number(times) * Number(period), Number(sum) * (SECONDS[unit] ?? 0), line);
      }
    });
  }
});

describe("grace periods", { skip }, () => {
  test("of the bus are longer than its lame duck mode", async () => {
    const manifests = await manifestsOf("cpu");
    const config = objectOf(manifests, "ConfigMap", "hone-nats").data["nats.conf"];
    const seconds = (name: string) => Number(new RegExp(`${name}: "(\\d+)s"`).exec(config)?.[1]);
    const pod = podOf(manifests, "nats");
    const [{ lifecycle }] = pod.containers;
    assert.deepEqual(lifecycle.preStop.exec.command, ["nats-server", "--signal", "ldm=1"]);
    const leaving = seconds("lame_duck_grace_period") + seconds("lame_duck_duration");
    assert.ok(leaving > 0 && pod.terminationGracePeriodSeconds > leaving, `${leaving} s`);
  });

  test("of the database and of Jaeger are at least the default of Kubernetes", async () => {
    for (const component of ["postgres", "jaeger"]) {
      const { terminationGracePeriodSeconds } = podOf(await manifestsOf("vllm-fsdp2"), component);
      assert.ok(terminationGracePeriodSeconds >= 30, component);
    }
  });
});
