/** Notes and scores that people give a rollout. Who writes is remembered in this browser, and checked by nobody. */

import { canWrite, READ_ONLY } from "../../access.ts";
import { read, runPath, send } from "../../api.ts";
import type { Note } from "../../api-types.ts";
import { confirmed } from "../../confirm-dialog.ts";
import { type Child, h, replace } from "../../dom.ts";
import { ago, number } from "../../format.ts";

const AUTHOR_KEY = "hone-note-author";

export interface NotesOptions {
  readonly runId: string;
  readonly slot: string;
  readonly numTurns: number;
  readonly signal: AbortSignal;
}

export function notesSection({ runId, slot, numTurns, signal }: NotesOptions): HTMLElement {
  const path = runPath(runId, "rollouts", slot, "notes");
  const list = h("ul", { class: "notes" });
  const problem = h("p", { class: "notice", role: "alert", hidden: true });
  const place = h("div");
  const tell = (error: unknown) => {
    problem.textContent = error instanceof Error ? error.message : String(error);
    problem.hidden = false;
  };
  const reload = async () => {
    const { notes } = await read<{ readonly notes: readonly Note[] }>(path, { signal });
    problem.hidden = true;
    const mayRemove = await canWrite();
    replace(
      list,
      notes.map((note) => noteItem(note, mayRemove, () => void remove(note))),
    );
  };
  const remove = async (note: Note) => {
    const agrees = await confirmed({
      title: "Remove this note?",
      text: "It is gone then, also from exports.",
      action: "Remove",
      isDangerous: true,
    });
    if (!agrees) return;
    try {
      await send("DELETE", `/notes/${note.id}`);
      await reload();
    } catch (error) {
      tell(error);
    }
  };
  const show = async () => {
    try {
      const [mayWrite] = await Promise.all([canWrite(), reload()]);
      replace(
        place,
        mayWrite
          ? noteForm(numTurns, async (note) => {
              await send("POST", path, note);
              await reload();
            })
          : h("p", { class: "small soft" }, READ_ONLY),
      );
    } catch (error) {
      if (!signal.aborted) tell(error);
    }
  };
  void show();
  return h(
    "section",
    { class: "section", id: "notes", "aria-label": "Notes" },
    h(
      "div",
      { class: "section-head" },
      h("h2", {}, "Notes"),
      h(
        "a",
        { class: "small", href: `/api/notes.jsonl?run=${encodeURIComponent(runId)}`, download: "" },
        "All notes of the run as JSONL",
      ),
    ),
    h("div", { class: "card notes-card" }, list, problem, place),
  );
}

function noteItem(
  { author, text, score, turn, createdAtMs }: Note,
  mayRemove: boolean,
  onRemove: () => void,
): Child {
  return h(
    "li",
    { class: "note" },
    h(
      "div",
      { class: "note-head small faint" },
      h("strong", {}, author || "Somebody"),
      turn !== null && h("a", { href: `#turn-${turn}` }, `turn ${turn + 1}`),
      h("span", { data: { ago: createdAtMs } }, ago(createdAtMs)),
      score !== null && h("span", { class: "badge" }, `score ${number(score, 4)}`),
      mayRemove && h("button", { class: "link-button", type: "button", onclick: onRemove }, "Remove"),
    ),
    text !== "" && h("p", { class: "note-text" }, text),
  );
}

interface NewNote {
  readonly text: string;
  readonly score: number | null;
  readonly turn: number | null;
  readonly author: string;
}

function noteForm(numTurns: number, onSend: (note: NewNote) => Promise<void>): HTMLElement {
  const text = h("textarea", { name: "text", rows: 3, maxlength: 10_000, "aria-label": "Note" });
  const score = h("input", { type: "number", name: "score", step: "any", placeholder: "none" });
  const author = h("input", { name: "author", maxlength: 100, value: storedAuthor(), autocomplete: "name" });
  const turn = h(
    "select",
    { name: "turn" },
    h("option", { value: "" }, "the rollout"),
    Array.from({ length: Math.min(numTurns, 200) }, (_, index) =>
      h("option", { value: index }, `turn ${index + 1}`),
    ),
  );
  const button = h("button", { class: "button button-main", type: "submit" }, "Add note");
  const problem = h("p", { class: "notice", role: "alert", hidden: true });
  const form = h(
    "form",
    { class: "note-form" },
    text,
    h(
      "div",
      { class: "note-fields" },
      h("label", {}, "About", turn),
      h("label", {}, "Score", score),
      h("label", {}, "By", author),
      button,
    ),
    problem,
  );
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    button.disabled = true;
    try {
      await onSend({
        text: text.value,
        score: score.value === "" ? null : Number(score.value),
        turn: turn.value === "" ? null : Number(turn.value),
        author: author.value,
      });
      keepAuthor(author.value);
      text.value = "";
      score.value = "";
      problem.hidden = true;
      text.focus();
    } catch (error) {
      problem.textContent = error instanceof Error ? error.message : String(error);
      problem.hidden = false;
    } finally {
      button.disabled = false;
    }
  });
  return form;
}

function storedAuthor(): string {
  try {
    return localStorage.getItem(AUTHOR_KEY) ?? "";
  } catch {
    // The browser may forbid storage; the name is then written anew.
    return "";
  }
}

function keepAuthor(author: string): void {
  try {
    localStorage.setItem(AUTHOR_KEY, author);
  } catch {
    // The browser forbids storage, as above.
    return;
  }
}
