/**
 * The actions that are possible in a state: those that change it, and those that only show something.
 *
 * Places, doors and lamps can be examined too; this is left out here, as it only repeats what `look` says.
 */

import { carriedOf, type House, type HouseState, placeOf, roomOf, visibleThings } from "./house.ts";
import { Treatment } from "./lexicon.ts";
import { type Action, applyAction } from "./rules.ts";

export function legalActions(house: House, state: HouseState): readonly Action[] {
  const moves = possibleMoves(house, state).filter(
    (action) => applyAction(house, state, action).state !== state,
  );
  return [...moves, ...looks(house, state)];
}

/** All moves that may change something, and some that do not. */
function possibleMoves(house: House, state: HouseState): Action[] {
  const { exits, places } = roomOf(house, state);
  const carried = carriedOf(house, state).map(({ name }) => name);
  const moves: Action[] = [
    ...exits.map(({ direction }): Action => ({ kind: "move", direction })),
    ...places.map((place): Action => ({ kind: "approach", place })),
  ];
  for (const { door } of exits) {
    if (door === undefined) continue;
    moves.push({ kind: "open", name: door }, { kind: "close", name: door });
    for (const key of carried) moves.push({ kind: "unlock", door, key });
  }
  const place = placeOf(house, state);
  if (place === undefined) return moves;
  const { name } = place;
  moves.push({ kind: "open", name }, { kind: "close", name });
  for (const thing of visibleThings(house, state))
    moves.push({ kind: "take", thing: thing.name, place: name });
  for (const thing of carried) {
    moves.push({ kind: "put", thing, place: name });
    for (const treatment of Object.values(Treatment))
      moves.push({ kind: "treat", treatment, thing, place: name });
  }
  for (const lamp of place.lamps) moves.push({ kind: "use", lamp });
  return moves;
}

function looks(house: House, state: HouseState): Action[] {
  const things = [...carriedOf(house, state), ...visibleThings(house, state)];
  return [
    ...things.map(({ name }): Action => ({ kind: "examine", name })),
    { kind: "inventory" },
    { kind: "look" },
  ];
}
