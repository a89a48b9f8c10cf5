import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { readShopAction } from "./actions.ts";

const click = (value: string) => ({ kind: "click", value });
const search = (keywords: string) => ({ kind: "search", keywords });

describe("readShopAction()", () => {
  test("reads searches and clicks, and the value of a click in any case", () => {
    assert.deepEqual(readShopAction(" search[Red mug]\n"), search("Red mug"));
    assert.deepEqual(readShopAction("click[ Buy Now ]"), click("buy now"));
    assert.deepEqual(readShopAction("click[< Prev]"), click("< prev"));
  });

  test("an argument ends at the last bracket, and what follows it does not matter", () => {
    assert.deepEqual(readShopAction("search[a [b] c] please"), search("a [b] c"));
    assert.deepEqual(readShopAction("click[a] or click[b]"), click("a] or click[b"));
  });

  test("reads the action behind the thoughts that ROLL's instruction asks for", () => {
    assert.deepEqual(readShopAction("Thought: I think so.\nAction: click[buy now]"), click("buy now"));
    assert.deepEqual(readShopAction("Action: click[a]\nAction: search[b]"), search("b"));
    assert.deepEqual(readShopAction("search[Action: figures]"), search("Action: figures"));
  });

  for (const text of [
    "",
    "buy now",
    "search",
    "search[]",
    "click[  ]",
    "click[buy now",
    "click]x[",
    "]click[a",
    "Click[buy now]",
    "I click[buy now]",
    "click [buy now]",
    "Action:",
    "Action: buy",
  ]) {
    test(`finds no action in ${JSON.stringify(text)}`, () => {
      assert.equal(readShopAction(text), undefined);
    });
  }

  test("cuts arguments, so that no answer is too long to be recorded", () => {
    const long = "x".repeat(1_000_000);
    assert.deepEqual(readShopAction(`search[${long}]`), search("x".repeat(500)));
    assert.deepEqual(readShopAction(`click[${long}]`), click("x".repeat(500)));
    assert.equal(readShopAction(`search[${long}`), undefined);
  });
});
