import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { episodesIn } from "./episode-waits.ts";

const metricsOf = (waiting: number, lent: number) =>
  `# TYPE hone_swarm_episodes gauge\nhone_swarm_episodes{state="waiting"} ${waiting}\nhone_swarm_episodes{state="lent"} ${lent}\n`;

describe("episodesIn()", () => {
  test("says how many episodes wait for a client and where, and how many clients have", () => {
    assert.equal(
      episodesIn(metricsOf(12, 3), "http://here"),
      "12 episodes wait for a client at http://here, clients have 3",
    );
    assert.equal(
      episodesIn(metricsOf(1, 0), "http://here"),
      "1 episode waits for a client at http://here, clients have 0",
    );
    assert.equal(episodesIn(metricsOf(0, 2), "http://here"), "clients have 2 of its episodes");
  });

  test("is empty where there are none", () => {
    assert.equal(episodesIn(metricsOf(0, 0), "http://here"), "");
    assert.equal(episodesIn("hone_service_ready 1\n", "http://here"), "");
  });
});
