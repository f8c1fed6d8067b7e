// How a text goes on behind tokens that are given, by `inspect` alone.

import { answerOf, countOf, placed, spelt } from "./spelling.js";
import { END, isBlank, isWritable, textOf, usable } from "./tokens.js";

/**
 * Writes a text: given tokens, and behind them those that `choose` chooses.
 *
 * `inspect` reads a guess, and says what the model would write at each step.
 * Where that is something else, it takes the guess's place, until nothing
 * changes. Each turn makes one more token sure, or many of them. A token that
 * the text has in place of some given ones is given, too.
 *
 * @param ask a function of an answer to its inspection
 * @param given the answer's first tokens
 * @param guess tokens that may follow them
 * @param choose a function of a step's choices and the step to one of them
 * @param most tokens that the answer may have
 * @param show a function of what is sure of the answer, after each turn
 * @returns the last inspection, how many tokens of the answer are chosen ones,
 *     and whether END was chosen behind them
 */
export async function write({
  ask, given, guess = [], choose, most, show,
}) {
  const asked = new Set();
  let answer = [...given, ...guess];
  let result;
  for (;;) {
    let seen;
    try {
      seen = placed(await ask(textOf(answer)), answer);
    } catch (error) {
      // The answer may have become longer than the model takes.
      if (result && error.isFinal) {
        return result;
      }
      throw error;
    }
    asked.add(textOf(answer));
    const kept = countOf(seen, answer, given);
    if (kept.isOver && !asked.has(textOf(given))) {
      // The guess has changed the last given token: it was a wrong one.
      answer = [...given];
      continue;
    }
    const tokens = answerOf(seen);
    given = tokens.slice(0, kept.count).concat(
      kept.isShort ? given.slice(-1) : []); // A blank that the text has lost.
    const { next, isEnded } = chosen(seen, given, choose, most);
    const other = next.findIndex((token, place) => token !== tokens[place]);
    const count = next.length;
    const sure = other < 0 ? count : other;
    result = { seen, count: sure, isEnded: false };
    show?.(result);
    if (count && isBlank(next.at(-1)) && count < most) {
      // A text loses it at its end: whatever stands behind it is a guess.
      next.push(...letters(seen.best.at(-1)).slice(0, 1));
    }
    const isSame = textOf(next) === textOf(answer);
    if (!count || (isSame && sure === count)) {
      return { seen, count, isEnded: isEnded && tokens[count] === END };
    }
    if (asked.has(textOf(next))) {
      // No text has the chosen tokens, but this one has their letters.
      const more = next.slice(0, Math.min(sure + 1, count));
      if (spelt(more).length <= spelt(given).length) {
        return result;
      }
      given = more;
    }
    answer = next;
  }
}

/** Given tokens, and those that are chosen behind them. */
function chosen(seen, given, choose, most) {
  const next = [...given];
  for (
    let step = seen.numGiven + next.length;
    step < seen.best.length && next.length < most;
    step++
  ) {
    const { token } = choose(seen.best[step], step);
    if (token === END) {
      return { next, isEnded: true };
    }
    next.push(token);
  }
  return { next, isEnded: false };
}

/**
 * An inspection as a result of `write`: all of it is the answer. An answer that
 * reached the model's limit has an END that was not chosen.
 */
export function whole(seen) {
  const hasEnd = seen.tokens.at(-1) === END;
  const count = seen.tokens.length - seen.numGiven - (hasEnd ? 1 : 0);
  const isEnded = hasEnd && mostProbable(seen.best.at(-1)).token === END;
  return { seen, count, isEnded };
}

/** The most probable of a step's choices that a text can have. */
export function mostProbable(choices) {
  return usable(choices)[0] ?? { token: END };
}

function letters(choices) {
  return choices
    .map(({ token }) => token)
    .filter((token) => isWritable(token) && !isBlank(token));
}

/**
 * A function that draws one of a step's choices. The same step draws by the
 * same number, so that what is asked again is drawn again.
 *
 * @param temperature flattens above 1, sharpens below
 * @param topK keeps this many
 * @param topP keeps the fewest that have this probability together
 */
export function drawing({ temperature, topK, topP }) {
  const numbers = [];
  return (choices, step) => {
    numbers[step] ??= Math.random();
    const kept = nucleus(tempered(usable(choices), temperature), topK, topP);
    const all = kept.reduce((sum, { share }) => sum + share, 0);
    let rest = numbers[step] * all;
    return kept.find(({ share }) => (rest -= share) < 0) ?? mostProbable(kept);
  };
}

function tempered(choices, temperature) {
  const greatest = Math.max(...choices.map(({ probability }) => probability));
  const shares = choices.map(
    ({ probability }) => (probability / greatest) ** (1 / temperature),
  );
  const all = shares.reduce((sum, share) => sum + share, 0);
  return choices.map((choice, i) => ({ ...choice, share: shares[i] / all }));
}

function nucleus(choices, topK, topP) {
  let before = 0;
  return choices.slice(0, topK).filter(({ share }) => {
    const isKept = before < topP;
    before += share;
    return isKept;
  });
}
