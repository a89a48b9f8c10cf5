/** Tests how texts and queries become words, and how the place of a match is shown. */

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { chatEpisode } from "../../testing/chat-episode.ts";
import { excerptFinder } from "./excerpt.ts";
import { rolloutWordsOf, textsOf } from "./rollout-texts.ts";
import { searchQueryOf, wordsOf } from "./words.ts";

const scored = chatEpisode("trains-1", { split: "eval", step: 1, task: 0, index: 0 });
const episode = scored.episode ?? assert.fail();

describe("words", () => {
  test("are in lower case, without punctuation, and apart in names of code", () => {
    assert.equal(wordsOf("Call get_weather(“Zürich HB”)!"), "call get weather zürich hb");
  });

  test("of languages without spaces are single characters", () => {
    assert.equal(wordsOf("我喜欢AI"), "我 喜 欢 ai");
  });

  test("are cut, as PostgreSQL would leave out longer ones", () => {
    assert.equal(wordsOf("x".repeat(5_000)).length, 100);
  });
});

describe("searchQueryOf()", () => {
  test("keeps quotes, exclusions and alternatives", () => {
    assert.equal(searchQueryOf('left "go up" -invalid or right'), '"left" "go up" -"invalid" or "right"');
  });

  test("looks for the words of a name in their order", () => {
    assert.equal(searchQueryOf("src/main.ts"), '"src main ts"');
  });

  test("knows no query without a word that must occur", () => {
    for (const query of ["", "  ", "!!", "-left", "or", '"']) assert.equal(searchQueryOf(query), undefined);
  });
});

describe("the texts of a rollout", () => {
  test("are kept apart by who wrote them", () => {
    const words = rolloutWordsOf(scored, episode);
    assert.match(words.prompt, /which train gets me from zürich/);
    assert.match(words.answer, /i need the departures/);
    assert.match(words.tool, /find trains .*ic 709/);
    assert.match(words.judge, /helpfulness/);
    assert.doesNotMatch(words.prompt, /im start/);
  });

  test("show the place of the first match", () => {
    const found = excerptFinder('"ic 709" -foo', undefined)(textsOf(scored, episode));
    assert.deepEqual([found?.place, found?.turn, found?.match], ["tool", 1, "IC 709"]);
    assert.equal(excerptFinder("ic", "answer")(textsOf(scored, episode))?.place, "answer");
    assert.equal(excerptFinder("nothing", undefined)(textsOf(scored, episode)), undefined);
  });
});
