/** Finds the HTTP address of a service of a stack, and reads its /metrics. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import path from "node:path";
import type { TestStack } from "../stack.ts";

/** @returns the address without a slash at its end. */
export function serviceUrl({ stateFolder }: TestStack, service: string): string {
  const { services } = JSON.parse(readFileSync(path.join(stateFolder, "stack.json"), "utf8")) as {
    services: Record<string, { httpPort: number } | undefined>;
  };
  const { httpPort } = services[service] ?? assert.fail(`no service ${service}`);
  return `http://127.0.0.1:${httpPort}`;
}

/** The figures of one process at one moment. */
export interface Scrape {
  readonly text: string;
  /** Sum over the series of a name whose labels hold these; undefined when there is none. */
  sum(name: string, labels?: Readonly<Record<string, string>>): number | undefined;
}

export async function scrape(stack: TestStack, service: string): Promise<Scrape> {
  const answer = await fetch(`${serviceUrl(stack, service)}/metrics`, {
    signal: AbortSignal.timeout(10_000),
  });
  assert.equal(answer.headers.get("content-type"), "text/plain; version=0.0.4; charset=utf-8");
  const text = await answer.text();
  return {
    text,
    sum(name, labels = {}) {
      const wanted = Object.entries(labels).map(([label, value]) => `${label}="${value}"`);
      const found = text
        .split("\n")
        .filter((line) => line.startsWith(`${name}{`) || line.startsWith(`${name} `))
        .filter((line) => wanted.every((part) => line.includes(part)));
      return found.length === 0
        ? undefined
        : found.reduce((total, line) => total + Number(line.slice(line.lastIndexOf(" ") + 1)), 0);
    },
  };
}
