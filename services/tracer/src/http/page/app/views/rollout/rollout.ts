/** The view of one rollout: its episode, and its turns as a chat and token by token. */

import { read, runPath } from "../../api.ts";
import type { RolloutAnswer, TokenView } from "../../api-types.ts";
import { h, link, replace } from "../../dom.ts";
import type { ViewContext } from "../../view.ts";
import { episodePlayer } from "./episode-player.ts";
import { notesSection } from "./notes.ts";
import { groupStrip, judgesWords, rolloutDetails, rolloutFacts, rolloutHead } from "./rollout-head.ts";
import { sampleTree } from "./sample-tree.ts";
import { trainedTokens } from "./token-record.ts";
import { ColorBy, recolor, tokenCard, tokenStrip } from "./tokens.ts";
import { colorChoice, type Strip, TURN_VIEWS, type TurnViewName, turnCard, viewChoice } from "./turn-card.ts";

export async function rolloutView({ root, params, signal, setPlace, navigate }: ViewContext): Promise<void> {
  const { run: runId = "", slot = "" } = params;
  setPlace(slot, [[runId, link("runs", runId)], [slot]]);
  const rollout = await read<RolloutAnswer>(runPath(runId, "rollouts", slot), { signal });
  const trained = trainedTokens(runId, rollout, signal);
  const card = tokenCard(trained.rowsOf);
  const turns = h("div", {
    class: "turns",
    data: { color: rollout.advantage === null ? ColorBy.logprob : ColorBy.advantage, view: viewInAddress() },
  });
  const strips: { readonly element: HTMLElement; readonly tokens: readonly TokenView[] }[] = [];
  const strip: Strip = (tokens, label) => {
    const element = tokenStrip(tokens, { label, card });
    strips.push({ element, tokens });
    return element;
  };
  replace(
    turns,
    rollout.turns.map((turn) => turnCard(turn, rollout, strip)),
    rollout.tails.map(({ sample, tokens }) =>
      h(
        "section",
        { class: "card turn turn-tail" },
        h(
          "div",
          { class: "turn-side" },
          h("h3", {}, "After the last turn"),
          h("span", { class: "small faint" }, `sample ${sample}`),
        ),
        h("div", { class: "turn-main" }, strip(tokens, `tokens after the last turn of sample ${sample}`)),
      ),
    ),
  );
  const show = (view: TurnViewName) => {
    turns.dataset.view = view;
    window.history.replaceState(null, "", view === "both" ? window.location.pathname : `?view=${view}`);
  };
  replace(
    root,
    rolloutHead(rollout),
    groupStrip(rollout),
    rolloutFacts(rollout),
    episodePlayer(runId, rollout, signal),
    h(
      "section",
      { class: "section" },
      h(
        "div",
        { class: "section-head turns-head" },
        h("h2", {}, "Turns"),
        viewChoice(viewInAddress(), show),
        colorChoice(turns, rollout),
      ),
      sampleTree(rollout.tree, (chosen) => showTurns(turns, chosen)),
      rollout.turns.length === 0
        ? h(
            "div",
            { class: "card empty" },
            h("p", {}, rollout.reason || "The rollout ended before its first turn."),
          )
        : turns,
    ),
    judgesWords(rollout),
    notesSection({ runId, slot, numTurns: rollout.turns.length, signal }),
    rolloutDetails(rollout),
    card.element,
  );
  showTurn();
  moveByKeys(signal, rollout, navigate);
  trained.reading
    .then(() => {
      // Until then a rollout's tokens have the advantage of its span, which is that of one role where several were trained.
      for (const { element, tokens } of strips) recolor(element, tokens, trained.advantageOf);
    })
    .catch((error: unknown) => {
      if (!signal.aborted) reportError(error);
    });
}

function viewInAddress(): TurnViewName {
  const wanted = new URLSearchParams(window.location.search).get("view");
  return TURN_VIEWS.find((view) => view === wanted) ?? "both";
}

/** Brings the turn of the address into view, as links from a search have one. */
function showTurn(): void {
  const turn = new URLSearchParams(window.location.search).get("turn");
  if (turn === null) return;
  const card = document.getElementById(`turn-${turn}`);
  card?.scrollIntoView({ block: "start" });
  card?.setAttribute("data-found", "yes");
}

/** Shows the turns of one history alone. @param chosen undefined = all. */
function showTurns(turns: HTMLElement, chosen: ReadonlySet<number> | undefined): void {
  for (const card of turns.querySelectorAll<HTMLElement>(".turn")) {
    card.hidden = chosen !== undefined && !chosen.has(Number(card.dataset.turn ?? -1));
  }
}

/** Makes the keys `[` and `]` go to the neighbours in the group. */
function moveByKeys(
  signal: AbortSignal,
  { runId, group, slot }: RolloutAnswer,
  navigate: (href: string) => void,
): void {
  const at = group.findIndex((member) => member.slot === slot);
  document.addEventListener(
    "keydown",
    (event) => {
      const move = event.key === "[" ? -1 : event.key === "]" ? 1 : undefined;
      const isTyped =
        event.target instanceof Element && event.target.closest("input, textarea, select, dialog");
      if (move === undefined || event.ctrlKey || event.metaKey || isTyped) return;
      const next = group[at + move];
      if (next !== undefined) navigate(link("runs", runId, "rollouts", next.slot));
    },
    { signal },
  );
}
