/** Tests lists of rollouts in a database: the search for words, sorts, and what was stored before there was a search. */

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { create, toBinary } from "@bufbuild/protobuf";
import type { Slot } from "@hone/core";
import { type ScoredEpisode, ScoredEpisodeSchema } from "@hone/proto-gen/rollout";
import { type Database, migrate, openDatabase, query, sql } from "@hone/storage";
import { silentLogger } from "@hone/telemetry";
import { startPostgres } from "@hone/testing";
import { ROLLOUT_SORTS, type RolloutFilter } from "../../domain/ports.ts";
import { rolloutRecordOf } from "../../domain/rollout-record.ts";
import { searchQueryOf } from "../../domain/search/words.ts";
import { chatEpisode } from "../../testing/chat-episode.ts";
import { migrations } from "../migrations.ts";
import { indexWords } from "./index-words.ts";
import { listRollouts } from "./list-rollouts.ts";
import { writeRollouts, writeTrainings } from "./write-rollouts.ts";

const RUN = "trains-1";

describe("listRollouts()", { timeout: 120_000 }, () => {
  let postgres: Awaited<ReturnType<typeof startPostgres>>;
  let database: Database;

  before(async () => {
    postgres = await startPostgres();
    database = await openDatabase({ url: postgres.url, schema: "tracer" });
    await migrate(database, { migrations });
    for (let index = 0; index < 30; index++)
      await store(slotOf(index), () => (index === 7 ? "我喜欢 Zürich" : ""));
  });
  after(async () => {
    await database?.close();
    await postgres?.stop();
  });

  const slotOf = (index: number): Slot => ({ split: "train", step: 1, task: index % 5, index });
  const store = async (slot: Slot, answer: (known: string) => string, reason = "") => {
    const scored = chatEpisode(RUN, slot, (known) => `${known} ${answer(known)}`);
    scored.reward = ((slot.index * 7) % 11) / 10;
    if (scored.scores[0] !== undefined) scored.scores[0].reason = reason;
    if (scored.episode?.task !== undefined) scored.episode.task.id = `task-${slot.task}`;
    await writeRollouts(database, [storedOf(scored, slot)]);
    if (slot.index % 3 === 0)
      await writeTrainings(database, [{ runId: RUN, slot, advantage: slot.index / 10 - 1, figures: {} }]);
  };
  const list = async (filter: Partial<RolloutFilter>) =>
    (await listRollouts(database, RUN, { limit: 100, ...filter })).rollouts.map(({ slot }) =>
      Number(slot.split(".")[3]),
    );
  const search = (text: string, filter: Partial<RolloutFilter> = {}) =>
    list({ words: searchQueryOf(text), ...filter });

  test("finds words by where they stand", async () => {
    assert.equal((await search("timetable")).length, 30);
    assert.equal((await search("timetable", { place: "answer" })).length, 30);
    assert.equal((await search("timetable", { place: "prompt" })).length, 0);
    assert.equal((await search("find_trains", { place: "tool" })).length, 30);
    assert.equal((await search("helpfulness", { place: "judge" })).length, 30);
    await store(slotOf(30), () => "", "names a train that was cancelled");
    assert.deepEqual(await search('"was cancelled"', { place: "judge" }), [30]);
    assert.deepEqual(await search("喜欢"), [7]);
    assert.deepEqual(await search("欢喜"), []);
    assert.deepEqual(
      await search("timetable -喜欢 zürich", { limit: 100 }),
      await list({ limit: 100 }).then((all) => all.filter((index) => index !== 7)),
    );
  });

  test("sorts by every column in both directions, and pages go on where the last one ended", async () => {
    for (const sort of ROLLOUT_SORTS) {
      for (const isAscending of [false, true]) {
        const all = await list({ sort, isAscending });
        const pages: number[] = [];
        let next: Partial<RolloutFilter> | undefined = {};
        while (next !== undefined) {
          const page = await listRollouts(database, RUN, { sort, isAscending, limit: 7, ...next });
          pages.push(...page.rollouts.map(({ slot }) => Number(slot.split(".")[3])));
          next =
            page.nextOffset !== null
              ? { offset: page.nextOffset }
              : page.nextBeforeId !== null && !isAscending
                ? { beforeId: page.nextBeforeId }
                : undefined;
        }
        if (!(sort === "stored" && isAscending)) assert.deepEqual(pages, all, `${sort} ${isAscending}`);
        assert.equal(new Set(all).size, all.length);
      }
    }
    const rewards = (await listRollouts(database, RUN, { sort: "reward", limit: 100 })).rollouts.map(
      ({ reward }) => reward,
    );
    assert.deepEqual(
      rewards,
      rewards.toSorted((a, b) => (b ?? -1) - (a ?? -1)),
    );
    // Only rollouts that were trained have an advantage.
    assert.deepEqual(
      await list({ sort: "advantage", isAscending: true }),
      [0, 3, 6, 9, 12, 15, 18, 21, 24, 27, 30],
    );
  });

  test("texts of any form are stored, and cost no more than their limit", async () => {
    const hostile = [
      Array.from({ length: 200_000 }, (_, n) => n.toString(36)).join(" "),
      Array.from({ length: 60_000 }, (_, n) => String.fromCodePoint(0x4e00 + (n % 20_000))).join(""),
      "\u{1d400}".repeat(50_000),
      "a\0b \u0001 \ud800 \ufffe",
      "x".repeat(100_000),
      "' || \\ \" :* & ! <-> ()".repeat(2_000),
      "a-b-c/d.e@f.g:h ".repeat(5_000),
    ];
    for (const [place, text] of hostile.entries()) {
      await store({ split: "eval", step: 1, task: 0, index: place }, () => text);
    }
    const sizes = await query(
      database,
      (db) =>
        db.execute<{ bytes: number }>(
          sql`select pg_column_size(words) as bytes from rollouts where split = 'eval'`,
        ),
      { action: "measure" },
    );
    assert.equal(sizes.length, hostile.length);
    assert.ok(
      sizes.every(({ bytes }) => bytes < 1_000_000),
      JSON.stringify(sizes),
    );
    const queries = ["' or 1=1 --", "a & b", "\\", ":*", "((((", "a".repeat(1_000), "- - -", '"""', "\0"];
    for (const text of queries) {
      const words = searchQueryOf(text);
      if (words !== undefined) await list({ words });
    }
  });

  test("what was stored without words gets them bit by bit", async () => {
    const forget = sql`update rollouts set words = null where split = 'train'`;
    await query(database, (db) => db.execute(forget), { action: "forget the words" });
    assert.deepEqual(await search("timetable", { split: "train" }), []);
    await indexWords(database, silentLogger(), new AbortController().signal);
    assert.equal((await search("timetable", { split: "train" })).length, 31);
  });
});

function storedOf(scored: ScoredEpisode, slot: Slot) {
  const { episode } = scored;
  assert.ok(episode !== undefined);
  return {
    record: rolloutRecordOf(create(ScoredEpisodeSchema, scored), episode, { slot, outcome: "completed" }),
    traceId: "",
    scored: toBinary(ScoredEpisodeSchema, scored),
  };
}
