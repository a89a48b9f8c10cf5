import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { readConversationRow } from "./conversation-row.ts";

const USER = { role: "user", content: "2 + 2?" };
const ANSWER = { role: "assistant", content: "4" };

describe("readConversationRow()", () => {
  const rows: [what: string, row: Record<string, unknown>, messages: unknown[]][] = [
    ["messages", { messages: [USER, ANSWER], source: "x" }, [USER, ANSWER]],
    ["a prompt and a response", { prompt: "2 + 2?", response: "4" }, [USER, ANSWER]],
    [
      "a prompt of messages",
      { prompt: [{ role: "system", content: "Be brief." }, USER], response: "4", messages: null },
      [{ role: "system", content: "Be brief." }, USER, ANSWER],
    ],
  ];
  for (const [what, row, messages] of rows) {
    test(`reads ${what}`, () => {
      assert.deepEqual(readConversationRow(row), { kind: "conversation", messages });
    });
  }

  const wrong: [what: string, row: Record<string, unknown>, problem: RegExp][] = [
    ["neither messages nor a prompt", { text: "2 + 2" }, /must have messages, or a prompt and a response/],
    ["no response", { prompt: "2 + 2?" }, /non-empty text as response/],
    ["a prompt that is a number", { prompt: 4, response: "4" }, /text or a list of messages as prompt/],
    ["messages that are not a list", { messages: "hello" }, /a list as messages/],
    ["an unknown role", { messages: [{ ...USER, role: "human" }, ANSWER] }, /as role of messages\[0\]/],
    [
      "content that is not a text",
      { messages: [USER, { ...ANSWER, content: 4 }] },
      /content of messages\[1\]/,
    ],
    ["no message of an assistant", { messages: [USER] }, /an assistant's message/],
    [
      "an answer before any question",
      { messages: [ANSWER, USER] },
      /begin its messages with one that the assistant answers/,
    ],
  ];
  for (const [what, row, problem] of wrong) {
    test(`says what is wrong with a row that has ${what}`, () => {
      const read = readConversationRow(row);
      assert.equal(read.kind, "wrong");
      assert.match(read.problem, problem);
    });
  }
});
