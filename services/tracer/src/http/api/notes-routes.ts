/**
 * Notes and scores that people give rollouts.
 *
 *   GET    /api/runs/:run/rollouts/:slot/notes       oldest first
 *   POST   /api/runs/:run/rollouts/:slot/notes       { text, score?, turn?, author? }
 *   DELETE /api/notes/:id
 *   GET    /api/notes.jsonl?run=                     all of them, one JSON object a line
 */

import { createHttpApp, errorBody } from "@hone/service-kit";
import type { Logger } from "@hone/telemetry";
import type { Hono } from "hono";
import { z } from "zod";
import { noteLine } from "../../domain/people/note.ts";
import type { TracerStore } from "../../domain/ports.ts";
import { MAX_COLUMN, storable } from "../../domain/run-event.ts";
import { readJson } from "./read-json.ts";
import { parseParameters, rowId, runParameters, slotParameters } from "./validate-query.ts";

const MAX_TEXT = 10_000;
const MAX_AUTHOR = 100;
/** Rows of an export that are read at a time. */
const EXPORT_PAGE = 500;

const noteParameters = z.object({ id: rowId });
const exportQuery = z.object({ run: runParameters.shape.run.optional() });
const newNote = z
  .strictObject({
    text: z.string().max(MAX_TEXT).default(""),
    score: z.number().nullable().default(null),
    turn: z.int().min(0).max(MAX_COLUMN).nullable().default(null),
    author: z.string().max(MAX_AUTHOR).default(""),
  })
  .refine(({ text, score }) => text.trim() !== "" || score !== null, "a note needs a text or a score");

export function notesRoutes(store: TracerStore, logger: Logger): Hono {
  const app = createHttpApp(logger);

  app.get("/runs/:run/rollouts/:slot/notes", async (c) => {
    const { run, slot } = parseParameters(slotParameters, c.req.param());
    return c.json({ notes: await store.readNotes(run, slot) });
  });

  app.post("/runs/:run/rollouts/:slot/notes", async (c) => {
    const { run, slot } = parseParameters(slotParameters, c.req.param());
    const { text, author, ...given } = await readJson(c, newNote);
    if ((await store.readRollout(run, slot)) === undefined) {
      const message = `a note cannot be stored: there is no rollout ${run}/${slot}`;
      return c.json(errorBody("NOT_FOUND", message), 404);
    }
    const texts = { text: storable(text.trim()), author: storable(author.trim()) };
    const note = await store.addNote({ runId: run, slot, ...texts, ...given, createdAtMs: Date.now() });
    if (note !== undefined) return c.json(note, 201);
    return c.json(
      errorBody("TOO_MANY", "this rollout has as many notes as it may have; remove one first"),
      409,
    );
  });

  app.delete("/notes/:id", async (c) => {
    const { id } = parseParameters(noteParameters, c.req.param());
    if (await store.removeNote(id)) return c.json({ removed: id });
    return c.json(errorBody("NOT_FOUND", `there is no note ${id}`), 404);
  });

  app.get("/notes.jsonl", async (c) => {
    const { run } = parseParameters(exportQuery, c.req.query());
    const name = run === undefined ? "notes" : `${run}-notes`;
    return c.body(linesOf(store, run), 200, {
      "content-type": "application/jsonl; charset=utf-8",
      "content-disposition": `attachment; filename="${name}.jsonl"`,
    });
  });
  return app;
}

function linesOf(store: TracerStore, run: string | undefined): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  let after = 0;
  return new ReadableStream({
    async pull(controller) {
      const page = await store.exportNotes(run, after, EXPORT_PAGE);
      after = page.at(-1)?.id ?? after;
      if (page.length > 0) controller.enqueue(encoder.encode(page.map(noteLine).join("")));
      if (page.length < EXPORT_PAGE) controller.close();
    },
  });
}
