import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Room } from "./rooms/room.ts";
import { solveRoom } from "./rooms/solve-room.ts";
import { Sokoban, type SokobanConfig, sokobanConfigSchema } from "./sokoban.ts";
import { roomOf } from "./testing.ts";

type Given = Parameters<typeof sokobanConfigSchema.parse>[0];

const sokobanWith = (config: Given = {}) => new Sokoban(sokobanConfigSchema.parse(config));

/** The environment at its beginning in a given room. */
function inRoom(rows: readonly string[], config: Given = {}): Sokoban {
  const room: Room = roomOf(...rows);
  const size: SokobanConfig["size"] = [Math.max(5, room.rows), Math.max(5, room.columns)];
  const environment = new Sokoban(
    sokobanConfigSchema.parse({ size, boxes: room.boxes.length, ...(config as object) }),
    () => room,
  );
  environment.reset(0);
  return environment;
}

const NEAR = ["######", "#PXO_#", "#____#", "######"];

describe("Sokoban", () => {
  test("the last box on its target ends the episode with 10.9", () => {
    const environment = inRoom(["#######", "#P_XO_#", "#######"]);
    const first = environment.step("Right");
    assert.deepEqual([first.reward, first.terminated, first.truncated], [-0.1, false, false]);
    assert.equal(first.observation, "#######\n#_PXO_#\n#######");
    const last = environment.step("Right");
    assert.deepEqual([last.reward, last.terminated, last.truncated], [10.9, true, false]);
    assert.equal(last.observation, "#######\n#__P√_#\n#######");
    assert.deepEqual(environment.metrics(), { success: 1, action_is_valid: 1, action_is_effective: 1 });
  });

  test("a box that comes onto a target gives 0.9, and -1.1 when it leaves the target", () => {
    const environment = inRoom(["#######", "#PXO__#", "#_X_O_#", "#_____#", "#######"]);
    assert.equal(environment.step("Right").reward, 0.9);
    assert.equal(environment.step("Right").observation.split("\n")[1], "#__SX_#");
    assert.equal(environment.step("Left").info.boxes_on_target, 0);
    const again = inRoom(["#######", "#PXO__#", "#_X_O_#", "#_____#", "#######"]);
    again.step("Right");
    assert.equal(again.step("Right").reward, -1.1);
  });

  test("a box that goes from a target onto another one changes no reward", () => {
    const environment = inRoom(["#######", "#P√OX_#", "#######"]);
    assert.equal(environment.step("Right").reward, -0.1);
  });

  test("walls and second boxes stop the player and the box before it", () => {
    for (const rows of [
      ["#####", "#PX##", "#__O#", "#####"],
      ["########", "#PXX_OO#", "########"],
    ]) {
      const environment = inRoom(rows);
      const { observation, reward, info } = environment.step("Right");
      assert.equal(observation, rows.join("\n"));
      assert.equal(reward, -0.1);
      assert.deepEqual([info.action_is_valid, info.action_is_effective], [true, false]);
    }
    const { info } = inRoom(NEAR).step("Up");
    assert.deepEqual([info.action, info.action_is_effective], ["Up", false]);
  });

  test("a box is never pulled", () => {
    const environment = inRoom(["#######", "#_PXO_#", "#######"]);
    assert.equal(environment.step("Left").observation, "#######\n#P_XO_#\n#######");
  });

  test("takes the move in any case, and nothing else for a move", () => {
    const environment = inRoom(NEAR);
    assert.equal(environment.step(" DOWN\n").info.action, "Down");
    for (const text of ["", "Down Up", "1", "go down"]) {
      const { info } = environment.step(text);
      assert.deepEqual([info.action, info.action_is_valid, info.action_is_effective], [null, false, false]);
    }
  });

  test("an action that is no move is a step, and its penalty is added to the reward of a step", () => {
    const environment = inRoom(NEAR, { formatPenalty: -0.25, maxSteps: 2 });
    const first = environment.step("");
    assert.deepEqual([first.reward, first.observation], [-0.35, NEAR.join("\n")]);
    const last = environment.step("?");
    assert.deepEqual([last.terminated, last.truncated], [false, true]);
    assert.deepEqual(environment.metrics(), { success: 0, action_is_valid: 0, action_is_effective: 0 });
    assert.equal(inRoom(NEAR).step("?").reward, -0.1);
  });

  test("is truncated after the last allowed step, unless that step solves the room", () => {
    const environment = inRoom(NEAR, { maxSteps: 1 });
    const moved = environment.step("Down");
    assert.deepEqual([moved.terminated, moved.truncated], [false, true]);
    environment.reset(0);
    const solved = environment.step("Right");
    assert.deepEqual([solved.terminated, solved.truncated, solved.info.success], [true, false, true]);
  });

  test("info says where the player is, what is above, below, left and right of it, and where the one box belongs", () => {
    const environment = inRoom(NEAR);
    assert.deepEqual(environment.reset(0).info, {
      player_row: 1,
      player_column: 1,
      neighbors: "#_#X",
      boxes_on_target: 0,
      box_row: 1,
      box_column: 2,
      target_row: 1,
      target_column: 3,
    });
    const { info } = environment.step("Down");
    assert.deepEqual([info.player_row, info.player_column, info.neighbors], [2, 1, "_##_"]);
    const two = inRoom(["########", "#PXXO_O#", "########"]).reset(0).info;
    assert.deepEqual(Object.keys(two), ["player_row", "player_column", "neighbors", "boxes_on_target"]);
  });

  test("every key of info that it announces is there at the reset", () => {
    for (const boxes of [1, 2]) {
      const environment = sokobanWith({ boxes });
      assert.deepEqual(Object.keys(environment.reset(1).info), environment.describe().infoKeys);
    }
  });

  test("legal actions are the moves that change something, pushes included", () => {
    const environment = inRoom(["######", "#PXO_#", "#X___#", "#O___#", "######"]);
    assert.deepEqual(environment.legalActions(), ["Down", "Right"]);
    assert.deepEqual(inRoom(["#######", "#PXX__#", "#_OO__#", "#######"]).legalActions(), ["Down"]);
  });

  test("its rooms follow from the seed, and their solutions solve them", () => {
    // Pinned, so that a change of the generator does not change the tasks of every run unnoticed.
    const environment = sokobanWith({ maxSteps: 100 });
    assert.equal(environment.reset(1).observation, PINNED.simple);
    assert.equal(sokobanWith({ size: 10, boxes: 2, searchDepth: 10 }).reset(7).observation, PINNED.larger);
    for (let seed = 0; seed < 20; seed++) {
      const moves = solveRoom(roomOf(...environment.reset(seed).observation.split("\n")))!;
      const last = moves.map((move) => environment.step(move)).at(-1)!;
      assert.deepEqual([last.terminated, last.reward], [true, 10.9]);
    }
  });

  test("rooms may have rows and columns of different numbers", () => {
    const rows = sokobanWith({ size: [5, 9] })
      .reset(2)
      .observation.split("\n");
    assert.deepEqual([rows.length, ...new Set(rows.map((row) => row.length))], [5, 9]);
  });

  test("shows and explains the room in the symbols of its configuration", () => {
    const usual = sokobanWith().reset(1).observation;
    const letters = sokobanWith({ symbols: "different_grid_vocab" });
    const { observation, info } = letters.reset(1);
    assert.equal(observation, translated(usual, "W.GCBA@"));
    assert.match(String(info.neighbors), /^[W.GB]{4}$/);
    assert.match(
      letters.describe().instruction ?? "",
      /\nW: wall, \.: empty, G: target, C: box on target, B: box, A: player, @: player on target\n/,
    );
    const [wall, empty, target, boxOnTarget, box, player, playerOnTarget] = "🧱 .*$@+";
    const own = { wall, empty, target, boxOnTarget, box, player, playerOnTarget };
    assert.equal(sokobanWith({ symbols: own }).reset(1).observation, translated(usual, "🧱 .*$@+"));
  });

  test("its instruction is ROLL's, and says how a tool is used where tools are", () => {
    const environment = sokobanWith();
    const meaning =
      "The meaning of each symbol in the state is:\n#: wall, _: empty, O: target, √: box on target, X: box, P: player, S: player on target\nYour available actions are:\nUp, Down, Left, Right";
    const rules =
      "You are solving the Sokoban puzzle. You are the player and you need to push all boxes to targets. When you are right next to a box, you can push it by moving in the same direction. You cannot push a box through a wall, and you cannot pull a box.";
    assert.equal(
      environment.describe("answer").instruction,
      `${rules} The answer must be one of action in a turn, format is <answer>Right</answer>.\n${meaning}`,
    );
    assert.equal(
      environment.describe("tool_call").instruction,
      `${rules} Use the move_player tool to move the player.\n${meaning}`,
    );
  });

  test("refuses a step before a reset or after the end", () => {
    const environment = sokobanWith({ maxSteps: 1 });
    assert.throws(() => environment.step("Up"), /needs a reset before its first step/);
    environment.reset(1);
    environment.step("?");
    assert.throws(() => environment.step("Up"), /the episode is over/);
    assert.throws(() => environment.legalActions(), /the episode is over/);
  });

  for (const [wrong, reason] of [
    [{ sise: 6 }, /sise/],
    [{ size: 2 }, />=3/],
    [{ size: [6, 6, 6] }, /from 3 to 32, or two of them/],
    [{ size: 4 }, /at least 5 in one direction/],
    [{ size: [5, 3], boxes: 2 }, /cells within the walls minus 2/],
    [{ boxes: 0 }, /boxes/],
    [{ boxes: 4, searchDepth: 5 }, /number of boxes plus 2/],
    [{ maxSteps: 0 }, /maxSteps/],
    [{ formatPenalty: 0.1 }, /formatPenalty/],
    [{ symbols: "letters" }, /roll, different_grid_vocab, or one character for each of wall/],
    [{ symbols: { wall: "#" } }, /one character for each of wall/],
    [{ symbols: symbols("##GCBA@") }, /seven different characters/],
    [{ symbols: { ...symbols("W.GCBA@"), wall: "WW" } }, /one printed character/],
    [{ symbols: { ...symbols("W.GCBA@"), wall: "\n" } }, /one printed character/],
  ] as const) {
    test(`refuses the configuration ${JSON.stringify(wrong)}`, () => {
      const result = sokobanConfigSchema.safeParse(wrong);
      assert.match(JSON.stringify(result.error?.issues ?? ""), reason);
    });
  }
});

function symbols(text: string) {
  const [wall, empty, target, boxOnTarget, box, player, playerOnTarget] = text;
  return { wall, empty, target, boxOnTarget, box, player, playerOnTarget };
}

/** A room in ROLL's usual symbols, in others. */
function translated(room: string, to: string): string {
  return [...room].map((symbol) => (symbol === "\n" ? symbol : [...to]["#_O√XPS".indexOf(symbol)])).join("");
}

const PINNED = {
  simple: ["######", "#____#", "#O___#", "###X_#", "###_P#", "######"].join("\n"),
  larger: [
    "##########",
    "#OXP__####",
    "#__X_O####",
    "##___#####",
    "#____#####",
    "##___#####",
    "#____#####",
    "#___######",
    "#____#####",
    "##########",
  ].join("\n"),
};
