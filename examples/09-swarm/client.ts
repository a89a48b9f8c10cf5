/** Plays episodes of a run with OpenAI's client until the run is over: the answer to a digit should be the next one. */

import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import OpenAI from "openai";

const { HONE_SWARM_URL: url = "", HONE_SWARM_KEY: swarmKey = "", HONE_SWARM_RUN: run = "" } = process.env;

/** Asks until there is an answer: each request may be repeated, also one whose answer was lost. */
async function post(to: string, key: string, body: object) {
  for (let tries = 0; ; tries++) {
    const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
    const request = { method: "POST", headers, body: JSON.stringify(body) };
    const response = await fetch(to, request).catch(() => undefined);
    if (response !== undefined && response.status !== 429 && response.status < 500) {
      const text = await response.text();
      return { status: response.status, text, ...(text === "" ? {} : JSON.parse(text)) };
    }
    if (tries === 30) throw new Error(`${to} does not answer`);
    await sleep(1_000);
  }
}

while (true) {
  const begun = await post(`${url}/runs/${run}/episodes`, swarmKey, { claim: randomUUID() });
  if (begun.status === 204) continue; // none waits, as the run is training
  if (begun.error?.code === "run_over") break;
  if (begun.status !== 200) throw new Error(begun.text);
  const { task, session, episode } = begun;
  try {
    const model = new OpenAI({ baseURL: session.openaiBaseUrl, apiKey: session.key });
    const answer = await model.chat.completions.create({ model: session.model, messages: task.prompt });
    const reward = answer.choices[0]?.message.content === task.row.reward_model.ground_truth ? 1 : 0;
    await post(`${episode.url}/end`, episode.key, { reward });
  } catch (error) {
    console.error(error);
    await post(`${episode.url}/abort`, episode.key, { reason: String(error) });
  }
}
