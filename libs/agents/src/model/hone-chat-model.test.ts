import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { FinishReason } from "@hone/rl";
import { contextOfTraceparent } from "@hone/telemetry";
import { ChatRenderer, type Tokenizer } from "@hone/tokenizer";
import { byteTokenizer, chatmlTokenizer, TOOL_TEMPLATE } from "@hone/tokenizer/testing";
import { AIMessage, type AIMessageChunk, HumanMessage, ToolMessage } from "@langchain/core/messages";
import { z } from "zod";
import type { GenerateCall, PolicyGeneration } from "../policies/policy.ts";
import { AttemptClock } from "../rollout/attempt-clock.ts";
import { Conversation } from "../rollout/conversation.ts";
import { HoneChatModel } from "./hone-chat-model.ts";
import { ModelSession } from "./model-session.ts";

const TOOL = {
  type: "function",
  function: {
    name: "get_weather",
    description: "Weather of a city",
    parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
  },
} as const;
const CALL = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris"}}\n</tool_call>';

/** A template that needs calls as data and refuses answers of tools without a call, as Mistral's templates do. */
const STRICT_TEMPLATE = `
{%- for message in messages %}
    {%- if message.role == 'tool' %}
        {%- if message.tool_call_id | length != 9 or not messages[loop.index0 - 1].tool_calls %}{{- raise_exception('no call') }}{%- endif %}
        {{- '[TOOL_RESULTS]' + message.tool_call_id + ' ' + message.content + '[/TOOL_RESULTS]' }}
    {%- elif message.role == 'assistant' %}
        {%- if message.tool_calls %}
            {{- '[TOOL_CALLS]' }}
            {%- for call in message.tool_calls %}{{- '{"name": "' + call.function.name + '", "arguments": ' + (call.function.arguments | tojson) + '}' }}{%- endfor %}
            {{- '</s>' }}
        {%- else %}{{- message.content + '</s>' }}{%- endif %}
    {%- else %}{{- '[INST]' + message.content + '[/INST]' }}{%- endif %}
{%- endfor %}{# tools #}`;
const STRICT = byteTokenizer(
  {
    control: ["<unk>", "</s>", "[INST]", "[/INST]", "[TOOL_CALLS]", "[TOOL_RESULTS]", "[/TOOL_RESULTS]"],
    eos: "</s>",
  },
  STRICT_TEMPLATE,
);

/** A template that shows the ids of calls beside their results, as Kimi's templates do. */
const KIMI_TEMPLATE = `
{%- if tools %}{{- '<|im_system|>tool_declare<|im_middle|>' + (tools | tojson) + '<|im_end|>' }}{%- endif %}
{%- for message in messages %}
    {%- if message.role == 'assistant' %}{{- '<|im_assistant|>assistant<|im_middle|>' + message.content }}
        {%- for call in message.tool_calls or [] %}{{- '<|tool_call_begin|>' + call.id + '<|tool_call_argument_begin|>' + (call.function.arguments | tojson) + '<|tool_call_end|>' }}{%- endfor %}
    {%- elif message.role == 'tool' %}{{- '<|im_system|>tool<|im_middle|>## Return of ' + message.tool_call_id + '\\n' + message.content }}
    {%- else %}{{- '<|im_user|>user<|im_middle|>' + message.content }}
    {%- endif %}{{- '<|im_end|>' }}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_assistant|>assistant<|im_middle|>' }}{%- endif %}`;
const KIMI = byteTokenizer(
  {
    control: [
      "[EOS]",
      "<|im_end|>",
      "<|im_user|>",
      "<|im_assistant|>",
      "<|im_system|>",
      "<|im_middle|>",
      "<|tool_calls_section_begin|>",
      "<|tool_calls_section_end|>",
      "<|tool_call_begin|>",
      "<|tool_call_argument_begin|>",
      "<|tool_call_end|>",
    ],
    eos: "<|im_end|>",
  },
  KIMI_TEMPLATE,
);

/** A model that answers with these texts, and its record. */
function modelOf(tokenizer: Tokenizer, ...texts: readonly string[]) {
  const conversation = new Conversation(new ChatRenderer(tokenizer));
  const calls: GenerateCall[] = [];
  const clock = new AttemptClock(60_000, () => undefined);
  clock.end();
  const session = new ModelSession({
    conversation,
    clock,
    signal: new AbortController().signal,
    trace: contextOfTraceparent(undefined),
    model: "test",
    sessionId: "session",
    groupId: "group",
    sampling: { temperature: 1, topP: 1, topK: 0, maxNewTokens: 500 },
    stopTokenIds: tokenizer.stopTokenIds,
    maxTurns: 10,
    maxContextTokens: 10_000,
    lowestVersion: 1,
    highestVersion: 1,
    seedOfTurn: (turn) => turn,
    policy: {
      async generate(call): Promise<PolicyGeneration> {
        const tokenIds = [...tokenizer.encode(texts[calls.push(call) - 1] ?? ""), tokenizer.eosTokenId ?? 0];
        for (const id of tokenIds) call.onTokens?.([id]);
        return {
          tokenIds,
          logprobs: tokenIds.map(() => -1),
          versions: [{ version: 1, tokenCount: tokenIds.length }],
          finishReason: FinishReason.stop,
          cachedTokens: 0,
          generationMs: 0,
          replica: "",
        };
      },
    },
  });
  const shown = () => calls.map(({ promptIds }) => tokenizer.decode(promptIds));
  return { model: new HoneChatModel(session), conversation, calls, shown };
}

describe("HoneChatModel with tools", () => {
  test("plays several roles of a rollout, of which only those that learn are trained", async () => {
    const { model, conversation } = modelOf(chatmlTokenizer(), "6*7", "42", "43");
    const critic = model.withRole("critic", { learn: false });
    await model.withRole("solver").invoke([new HumanMessage("How many?")]);
    await critic.invoke([new HumanMessage("Is it 42?")]);
    await critic.bindTools([TOOL]).invoke([new HumanMessage("Is it 43?")]);
    const { samples, turns } = conversation.record();
    assert.deepEqual(
      turns.map(({ info, responseText }) => [info?.role, responseText]),
      [
        ["solver", "6*7"],
        ["critic", "42"],
        ["critic", "43"],
      ],
    );
    assert.equal(samples.length, 1);
    assert.ok(turns.slice(1).every(({ sample }) => sample === samples.length));
  });

  test("reads calls from the text that the model wrote, and records their tokens", async () => {
    const { model } = modelOf(chatmlTokenizer(TOOL_TEMPLATE), `Well.\n${CALL}`);
    const answer = await model.bindTools([TOOL]).invoke([new HumanMessage("Rain?")]);
    assert.equal(answer.content, "Well.");
    assert.deepEqual(answer.tool_calls, [
      { id: "c00000000", name: "get_weather", args: { city: "Paris" }, type: "tool_call" },
    ]);
    const { tokenIds } = answer.response_metadata as { tokenIds: number[] };
    assert.equal(chatmlTokenizer().decode(tokenIds), `Well.\n${CALL}<|im_end|>`);
  });

  test("hides the tools and reads no calls if tool_choice is none", async () => {
    const { model, shown } = modelOf(chatmlTokenizer(TOOL_TEMPLATE), CALL);
    const answer = await model.bindTools([TOOL], { tool_choice: "none" }).invoke([new HumanMessage("Rain?")]);
    assert.equal(answer.content, CALL);
    assert.doesNotMatch(shown()[0] ?? "", /get_weather/);
  });

  test("refuses stop texts, because the record cannot contain them", async () => {
    const { model } = modelOf(chatmlTokenizer(TOOL_TEMPLATE), "a");
    await assert.rejects(model.invoke([new HumanMessage("Rain?")], { stop: ["\n"] }), /stop texts/);
  });

  test("continues verbatim, including odd spaces, if the template takes calls as data", async () => {
    const written = '[TOOL_CALLS] [{"name":"get_weather",  "arguments":{"city":"Paris"}}]';
    const { model, conversation, shown } = modelOf(STRICT, written, "Rain.");
    const bound = model.bindTools([TOOL]);
    const question = new HumanMessage("Rain?");
    const answer = await bound.invoke([question]);
    const id = answer.tool_calls?.[0]?.id ?? "";
    assert.match(id, /^[a-z0-9]{9}$/);
    await bound.invoke([question, answer, new ToolMessage({ content: "wet", tool_call_id: id })]);
    assert.equal(conversation.record().samples.length, 1);
    assert.equal(shown()[1], `[INST]Rain?[/INST]${written}</s>[TOOL_RESULTS]${id} wet[/TOOL_RESULTS]`);
  });

  test("keeps the ids that a model gives its calls, unless it repeats one", async () => {
    const call = (id: string, city: string) =>
      `<|tool_call_begin|>${id}<|tool_call_argument_begin|>{"city": "${city}"}<|tool_call_end|>`;
    const written = `<|tool_calls_section_begin|>${call("functions.get_weather:0", "Paris")}${call("functions.get_weather:0", "Rome")}<|tool_calls_section_end|>`;
    const { model, conversation, shown } = modelOf(KIMI, written, "Rain.");
    const bound = model.bindTools([TOOL]);
    const question = new HumanMessage("Rain?");
    const answer = await bound.invoke([question]);
    const ids = (answer.tool_calls ?? []).map(({ id = "" }) => id);
    assert.deepEqual(ids, ["functions.get_weather:0", "c00000001"]);
    const results = ids.map((id) => new ToolMessage({ content: "wet", tool_call_id: id }));
    await bound.invoke([question, answer, ...results]);
    assert.equal(conversation.record().samples.length, 1);
    const added = shown()[1]?.split(`${written}<|im_end|>`)[1];
    const result = (id: string) => `<|im_system|>tool<|im_middle|>## Return of ${id}\nwet<|im_end|>`;
    assert.equal(added, `${ids.map(result).join("")}<|im_assistant|>assistant<|im_middle|>`);
  });

  test("starts a new sample if the agent changed a call", async () => {
    const { model, conversation } = modelOf(chatmlTokenizer(TOOL_TEMPLATE), CALL, "Rain.");
    const bound = model.bindTools([TOOL]);
    const question = new HumanMessage("Rain?");
    const [call] = (await bound.invoke([question])).tool_calls ?? [];
    const changed = new AIMessage({ content: "", tool_calls: [{ ...call!, args: { city: "Rome" } }] });
    await bound.invoke([question, changed, new ToolMessage({ content: "wet", tool_call_id: call!.id! })]);
    assert.equal(conversation.record().samples.length, 2);
  });

  test("streams text as soon as it is certain and then the calls; together they are the recorded message", async () => {
    const { model, conversation } = modelOf(
      chatmlTokenizer(TOOL_TEMPLATE),
      `Let me see. <b>\n${CALL}`,
      "Rain.",
    );
    const bound = model.bindTools([TOOL]);
    const question = new HumanMessage("Rain?");
    let whole: AIMessageChunk | undefined;
    const texts: string[] = [];
    for await (const chunk of await bound.stream([question])) {
      texts.push(chunk.text);
      whole = whole === undefined ? chunk : whole.concat(chunk);
    }
    assert.ok(texts.length > 10, `${texts.length}`);
    assert.equal(texts.join(""), "Let me see. <b>\n");
    assert.deepEqual(whole?.tool_calls?.[0]?.args, { city: "Paris" });
    await bound.invoke([question, whole!, new ToolMessage({ content: "wet", tool_call_id: "c00000000" })]);
    assert.equal(conversation.record().samples.length, 1);
  });

  test("streams answers without tools, leaving out control tokens", async () => {
    const { model } = modelOf(chatmlTokenizer(TOOL_TEMPLATE), "It rains é😀.");
    const texts: string[] = [];
    for await (const chunk of await model.stream([new HumanMessage("Rain?")])) texts.push(chunk.text);
    assert.equal(texts.join(""), "It rains é😀.");
    assert.ok(texts.length > 5);
  });

  test("gives structured output from the tool call that LangChain asks for", async () => {
    const written =
      '<tool_call>{"name": "extract", "arguments": {"city": "Paris", "isWet": true}}</tool_call>';
    const { model } = modelOf(chatmlTokenizer(TOOL_TEMPLATE), written);
    const schema = z.object({ city: z.string(), isWet: z.boolean() });
    const weather = await model.withStructuredOutput(schema).invoke("Rain?");
    assert.deepEqual(weather, { city: "Paris", isWet: true });
  });

  test("keeps calls that it could not read, with the reason", async () => {
    const { model } = modelOf(chatmlTokenizer(TOOL_TEMPLATE), "<tool_call>rain?</tool_call>");
    const answer = await model.bindTools([TOOL]).invoke([new HumanMessage("Rain?")]);
    assert.equal(answer.content, "<tool_call>rain?</tool_call>");
    assert.deepEqual(answer.invalid_tool_calls, [
      { args: "rain?", error: "is no JSON", type: "invalid_tool_call" },
    ]);
  });

  test("removes harmony's marks and thoughts from an answer, with and without tools, streamed or not", async () => {
    const written =
      "<|channel|>analysis<|message|>Clouds.<|end|><|start|>assistant<|channel|>final<|message|>It rains.";
    const control = ["<|start|>", "<|channel|>", "<|message|>", "<|end|>", "<|return|>"];
    const template =
      "{% for m in messages %}<|start|>{{ m.role }}<|message|>{{ m.content }}<|end|>{% endfor %}<|start|>assistant{# <|channel|> tools #}";
    const harmony = byteTokenizer({ control: ["<|endoftext|>", ...control], eos: "<|return|>" }, template);
    const { model, conversation } = modelOf(harmony, written, written, written);
    const question = [new HumanMessage("Rain?")];
    assert.equal((await model.invoke(question)).content, "It rains.");
    assert.equal((await model.bindTools([TOOL]).invoke(question)).content, "It rains.");
    const texts: string[] = [];
    for await (const chunk of await model.stream(question)) texts.push(chunk.text);
    assert.equal(texts.join(""), "It rains.");
    assert.deepEqual(
      conversation.turns.map(({ responseText }) => responseText),
      ["It rains.", "It rains.", "It rains."],
    );
  });

  test("uses the given tool call format instead of the template's", async () => {
    const { model } = modelOf(chatmlTokenizer(TOOL_TEMPLATE), '[get_weather(city="Paris")]');
    const answer = await model.withToolCallFormat("pythonic").bindTools([TOOL]).invoke("Rain?");
    assert.deepEqual(answer.tool_calls?.[0]?.args, { city: "Paris" });
  });
});
