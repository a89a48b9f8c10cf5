/** What a text looks like when its writer has gone off the rails. All take time in proportion to the text. */

/** Longest stretch of words that is looked for, and how often it must come in a row. */
const MAX_PERIOD_WORDS = 20;
const MIN_WORD_REPEATS = 10;
/** A stretch of up to so many characters, and how many characters of it must come in a row: longer than any rule of dashes. */
const MAX_PERIOD_CHARACTERS = 8;
const MIN_LOOP_CHARACTERS = 200;

/** Whether a stretch of words or characters comes again and again in a row. */
export function holdsLoop(text: string): boolean {
  const words = text.split(/\s+/).filter((word) => word !== "");
  return (
    hasPeriod(words, MAX_PERIOD_WORDS, (period) => period * MIN_WORD_REPEATS) ||
    hasPeriod(text.replace(/\s+/g, " "), MAX_PERIOD_CHARACTERS, () => MIN_LOOP_CHARACTERS)
  );
}

/** Whether some `minLength(period)` neighbours in a row each equal the one `period` before them, the first period counted. */
function hasPeriod(
  items: ArrayLike<string>,
  maxPeriod: number,
  minLength: (period: number) => number,
): boolean {
  for (let period = 1; period <= maxPeriod; period++) {
    const wanted = minLength(period) - period;
    let run = 0;
    for (let index = period; index < items.length; index++) {
      run = items[index] === items[index - period] ? run + 1 : 0;
      if (run >= wanted) return true;
    }
  }
  return false;
}

/** Tokens that steer chat templates; as text of an answer they have leaked. */
const CONTROL_TOKEN =
  /<\|(im_start|im_end|endoftext|eot_id|start_header_id|end_header_id|begin_of_text|end_of_text|user|assistant|system|observation)\|>|<(start|end)_of_turn>|\[\/?INST\]|<\/?s>/;

/** Whether a token of a chat template stands in a text. */
export function holdsControlToken(text: string): boolean {
  return CONTROL_TOKEN.test(text);
}

/** Share of the letters that are of none of the scripts, named as Unicode does; 0 for a text without letters. */
export function otherScriptShare(text: string, scripts: readonly string[]): number {
  const allowed = new RegExp(
    `[\\p{Script=Common}${scripts.map((name) => `\\p{Script=${name}}`).join("")}]`,
    "u",
  );
  let letters = 0;
  let others = 0;
  for (const letter of text.match(/\p{L}/gu) ?? []) {
    letters++;
    if (!allowed.test(letter)) others++;
  }
  return letters === 0 ? 0 : others / letters;
}
