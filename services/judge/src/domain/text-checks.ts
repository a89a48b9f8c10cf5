/** Recognises degenerate texts of a policy. The time of every check is proportional to the length of the text. */

/** Longest sequence of words that counts as a loop, and how often it must be repeated in a row. */
const MAX_PERIOD_WORDS = 20;
const MIN_WORD_REPEATS = 10;
/** Longest sequence of characters that counts as a loop, and how long its repetitions must be together: longer than a line of dashes. */
const MAX_PERIOD_CHARACTERS = 8;
const MIN_LOOP_CHARACTERS = 200;

/** Whether a text repeats a sequence of words or characters many times in a row. */
export function holdsLoop(text: string): boolean {
  const words = text.split(/\s+/).filter((word) => word !== "");
  return (
    hasPeriod(words, MAX_PERIOD_WORDS, (period) => period * MIN_WORD_REPEATS) ||
    hasPeriod(text.replace(/\s+/g, " "), MAX_PERIOD_CHARACTERS, () => MIN_LOOP_CHARACTERS)
  );
}

/** Whether `minLength(period)` consecutive items repeat with a period, counting the first period. */
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

/** Control tokens of chat templates, which must not occur in the text of an answer. */
const CONTROL_TOKEN =
  /<\|(im_start|im_end|endoftext|eot_id|start_header_id|end_header_id|begin_of_text|end_of_text|user|assistant|system|observation)\|>|<(start|end)_of_turn>|\[\/?INST\]|<\/?s>/;

/** Whether a text contains a control token of a chat template. */
export function holdsControlToken(text: string): boolean {
  return CONTROL_TOKEN.test(text);
}

/** Share of the letters that belong to none of the scripts (by their Unicode names); 0 for a text without letters. */
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
