/**
 * Plays an episode frame by frame: the state as its environment draws it, and beside it what the model was shown and answered there.
 *
 * E1: pictures come from code of users. They are images with a data URL: no script in them runs, they load nothing, and opened
 *     alone they have an origin of their own.
 * E2: without frames, while they are loaded or because there are none, the turns alone are played.
 */

import { read, runPath } from "../../api.ts";
import type { FramesView, FrameView, RolloutAnswer, TurnView } from "../../api-types.ts";
import { type Child, h, replace } from "../../dom.ts";
import { number } from "../../format.ts";

const FRAME_MS = 900;

/** The section with the player; null where there is nothing to play. */
export function episodePlayer(runId: string, rollout: RolloutAnswer, signal: AbortSignal): Child {
  const hasEnvironment = rollout.task.environment !== "";
  if (rollout.turns.length === 0 || (rollout.turns.length === 1 && !hasEnvironment)) return null;
  const player = makePlayer(rollout.turns, signal);
  const notice = h("p", { class: "small soft player-notice", role: "status" });
  const show = (text: string) => {
    notice.textContent = text;
    notice.hidden = text === "";
  };
  show(hasEnvironment ? "The episode is being played again …" : "");
  if (hasEnvironment) void loadFrames(runId, rollout, signal, player, show);
  return h(
    "section",
    { class: "section", id: "episode", "aria-label": "Episode" },
    h(
      "div",
      { class: "section-head" },
      h("h2", {}, "Episode"),
      h(
        "span",
        { class: "small faint keys" },
        h("kbd", {}, "←"),
        " ",
        h("kbd", {}, "→"),
        " go through it, ",
        h("kbd", {}, "space"),
        " plays it",
      ),
    ),
    notice,
    player.element,
  );
}

interface Player {
  readonly element: HTMLElement;
  setFrames(frames: readonly FrameView[]): void;
}

/** A place in the episode: a frame, a turn, or both. */
interface Position {
  readonly frame?: FrameView;
  readonly turn?: TurnView;
}

async function loadFrames(
  runId: string,
  { slot }: RolloutAnswer,
  signal: AbortSignal,
  player: Player,
  show: (text: string) => void,
): Promise<void> {
  try {
    const path = runPath(runId, "rollouts", slot, "frames");
    const { frames, notice, source } = await read<FramesView>(path, { signal });
    show(notice);
    // Recorded texts are beside the frame anyway, as what the model was shown (E2).
    if (source === "environment") player.setFrames(frames);
  } catch (error) {
    if (!signal.aborted)
      show(`The frames could not be loaded: ${error instanceof Error ? error.message : String(error)}`);
  }
}

/**
 * What is shown one after another: each turn with the frame that it saw, and frames that no turn saw, such as the last one.
 * @param frames empty = the turns alone (E2).
 */
export function positionsOf(turns: readonly TurnView[], frames: readonly FrameView[]): readonly Position[] {
  if (frames.length === 0) return turns.map((turn) => ({ turn }));
  return frames.flatMap((frame, index) => {
    const next = frames[index + 1]?.after ?? Number.POSITIVE_INFINITY;
    const seen = turns.filter((turn) => turn.index > (frame.after ?? -1) && turn.index <= next);
    return seen.length === 0 ? [{ frame }] : seen.map((turn) => ({ frame, turn }));
  });
}

function makePlayer(turns: readonly TurnView[], signal: AbortSignal): Player {
  let positions = positionsOf(turns, []);
  let at = 0;
  let timer: ReturnType<typeof setInterval> | undefined;

  const screen = h("div", { class: "player-screen" });
  const side = h("div", { class: "player-side", tabindex: 0 });
  const place = h("span", { class: "num small soft player-place" });
  const slider = h("input", {
    type: "range",
    min: 0,
    class: "player-slider",
    "aria-label": "Place in the episode",
    oninput: () => go(Number(slider.value)),
  });
  const makeButton = (label: string, text: string, onclick: () => void) =>
    h("button", { type: "button", class: "button", "aria-label": label, title: label, onclick }, text);
  const play = makeButton("Play", "▶", () => toggle());
  const back = makeButton("Step back", "|◀", () => go(at - 1));
  const forward = makeButton("Step forward", "▶|", () => go(at + 1));
  const element = h(
    "div",
    { class: "card player", onkeydown: (event: KeyboardEvent) => moveByKey(event) },
    h("div", { class: "player-main" }, screen, side),
    h("div", { class: "player-controls" }, back, play, forward, slider, place),
  );

  function go(to: number, isPlaying = false): void {
    if (!isPlaying) stop();
    at = Math.max(0, Math.min(positions.length - 1, to));
    draw();
  }

  function draw(): void {
    const position = positions[at] ?? {};
    const { frame, turn } = position;
    element.dataset.screen = frame === undefined ? "none" : "shown";
    replace(screen, screenOf(frame));
    replace(side, turn === undefined ? afterOf(frame, at === positions.length - 1) : turnOf(turn));
    side.scrollTop = 0;
    slider.max = String(positions.length - 1);
    slider.value = String(at);
    slider.setAttribute("aria-valuetext", placeText(position, at, positions.length));
    place.textContent = `${at + 1} / ${positions.length}`;
    disable(back, at === 0);
    disable(forward, at === positions.length - 1);
  }

  /** A disabled button gets no keys, so the slider takes the focus over from it. */
  function disable(button: HTMLButtonElement, isDisabled: boolean): void {
    if (isDisabled && button === document.activeElement) slider.focus();
    button.disabled = isDisabled;
  }

  function stop(): void {
    clearInterval(timer);
    timer = undefined;
    play.textContent = "▶";
    play.setAttribute("aria-label", "Play");
    play.title = "Play";
  }

  function toggle(): void {
    if (timer !== undefined) {
      stop();
      return;
    }
    if (at === positions.length - 1) go(0);
    play.textContent = "❚❚";
    play.setAttribute("aria-label", "Pause");
    play.title = "Pause";
    timer = setInterval(() => {
      go(at + 1, true);
      if (at === positions.length - 1) stop();
    }, FRAME_MS);
  }

  function moveByKey(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const isButton = event.target instanceof HTMLButtonElement;
    const targets: Readonly<Record<string, number>> = {
      ArrowLeft: at - 1,
      ArrowRight: at + 1,
      Home: 0,
      End: positions.length - 1,
    };
    const to = targets[event.key];
    // The space key presses a button that has the focus.
    if (to !== undefined) go(to);
    else if (event.key === " " && !isButton) toggle();
    else return;
    event.preventDefault();
  }

  signal.addEventListener("abort", stop, { once: true });
  draw();
  return {
    element,
    setFrames(frames: readonly FrameView[]) {
      // The turn that was looked at stays in view.
      const turn = positions[at]?.turn;
      positions = positionsOf(turns, frames);
      go(
        Math.max(
          0,
          positions.findIndex((position) => position.turn === turn),
        ),
      );
    },
  };
}

/** The picture of a state, or its text. */
function screenOf(frame: FrameView | undefined): Child {
  if (frame === undefined) return null;
  const text = h("pre", { class: "player-text" }, frame.text);
  const source = sourceOf(frame);
  if (source === undefined) return [text, causeOf(frame)];
  const image = h("img", { class: "player-picture", src: source, alt: titleOf(frame) });
  // What is no picture after all is shown by its text.
  image.addEventListener("error", () => image.replaceWith(text), { once: true });
  return [image, causeOf(frame)];
}

/** E1 */
function sourceOf({ svg, png }: FrameView): string | undefined {
  if (svg !== undefined) return `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`;
  return png === undefined ? undefined : `data:image/png;base64,${png}`;
}

/** What the picture says of itself, for those who do not see it; else the state's text. It is not parsed, so that nothing in it acts (E1). */
function titleOf({ svg, text }: FrameView): string {
  const title = /<title[^<>]*>([^<]*)<\/title>/.exec(svg ?? "")?.[1]?.trim() ?? "";
  const entities: Readonly<Record<string, string>> = { lt: "<", gt: ">", quot: '"', apos: "'", amp: "&" };
  return title.replace(/&(lt|gt|quot|apos|amp);/g, (whole, name: string) => entities[name] ?? whole) || text;
}

/** What led to a state. */
function causeOf({ after, action, reward }: FrameView): HTMLElement {
  if (after === null) return h("p", { class: "small soft player-cause" }, "at the start");
  return h(
    "p",
    { class: "small soft player-cause" },
    `after turn ${after + 1}: `,
    h("span", { class: "mono" }, action === "" ? "no action" : action),
    reward !== 0 && [", reward ", h("span", { class: "num" }, number(reward, 3))],
  );
}

function turnOf({ index, promptText, responseText }: TurnView): Child {
  return [
    h("h3", {}, h("a", { href: `#turn-${index}` }, `Turn ${index + 1}`)),
    h("h4", {}, "What the model was shown"),
    h("pre", { class: "turn-text soft player-prompt" }, promptText),
    h("h4", {}, "What it answered"),
    h("pre", { class: "turn-text player-answer" }, h("mark", {}, responseText)),
  ];
}

function afterOf(frame: FrameView | undefined, isEnd: boolean): Child {
  const text = isEnd ? "The end of the episode" : `Between actions of turn ${(frame?.after ?? 0) + 1}`;
  return [h("h3", {}, text), h("p", { class: "soft" }, "No turn saw this state.")];
}

function placeText({ turn }: Position, at: number, count: number): string {
  return turn === undefined ? `state ${at + 1} of ${count}` : `turn ${turn.index + 1}, ${at + 1} of ${count}`;
}
