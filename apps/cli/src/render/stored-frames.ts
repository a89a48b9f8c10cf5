/** Asks the tracer for the frames of a stored rollout. */

import { z } from "zod";
import { UsageError } from "../errors.ts";
import { askTracer, type TracerPlace } from "../stack/ask-tracer.ts";

const frameSchema = z.object({
  after: z.number().nullable(),
  action: z.string().nullable(),
  reward: z.number().nullable(),
  text: z.string(),
  svg: z.string().optional(),
  png: z.base64().optional(),
});
const framesSchema = z.object({
  source: z.enum(["environment", "record"]),
  notice: z.string(),
  frames: z.array(frameSchema),
});

/** One state of an episode: as an SVG document, a PNG file in Base64, or its text alone. */
export type StoredFrame = z.output<typeof frameSchema>;
export type StoredFrames = z.output<typeof framesSchema>;

const ROLLOUT = /^(train|eval|warm)(\.\d{1,10}){3}$/;

/** @throws {UsageError} when the run or the rollout is unknown, or has no frame. */
export async function storedFrames(
  place: TracerPlace,
  runId: string,
  rollout: string,
): Promise<StoredFrames> {
  if (!ROLLOUT.test(rollout)) {
    throw new UsageError(
      `"${rollout}" does not name a rollout; give it as the page does, SPLIT.STEP.TASK.INDEX, such as train.12.0.3`,
    );
  }
  const base = `/api/runs/${encodeURIComponent(runId)}`;
  const run = await askTracer(place, base, z.unknown());
  if (run.kind === "missing") {
    throw new UsageError(`the tracer has no run ${runId}; hone status shows the runs`);
  }
  const answer = await askTracer(place, `${base}/rollouts/${rollout}/frames`, framesSchema);
  if (answer.kind === "missing") throw new UsageError(answer.message);
  if (answer.value.frames.length === 0) {
    throw new UsageError(
      `the rollout ${rollout} of ${runId} ended before its first turn, so there is nothing to show`,
    );
  }
  return answer.value;
}

/** What led to a frame, in one line: `turn 3: Right, reward 1`. */
export function captionOf({ after, action, reward }: StoredFrame): string {
  if (after === null) return "start";
  const shown = action === "" ? "no action" : (action ?? "").replace(/\s+/g, " ").trim();
  const gave = reward === null || reward === 0 ? "" : `reward ${Number(reward.toFixed(3))}`;
  const what = [shown, gave].filter((part) => part !== "").join(", ");
  return `turn ${after + 1}${what === "" ? "" : `: ${what}`}`;
}
