// Which tokens of an inspection are an answer's, and how many spell its start.
//
// The server reads an answer as a text, behind the prompt. That may have other
// tokens than those that wrote it: "one t" and "wo" may be "▁one", "▁two".

import { END, isMark, isWritable, textOf } from "./tokens.js";

/**
 * An inspection that says by letters where its answer begins.
 *
 * @param seen what `inspect` gave for an answer
 * @param answer the tokens that wrote it
 * @returns `seen` with such a `numGiven`, and with `first`: what the answer has
 *     of a token that it shares with the prompt, or null
 */
export function placed(seen, answer) {
  const tokens = written(seen);
  if (!seen.numGiven || !spells(tokens, answer)) {
    return { ...seen, first: null };
  }
  const start = Math.max(
    spelt(tokens).trimEnd().length - spelt(answer).trimEnd().length, 0);
  const before = (count) => spelt(tokens.slice(0, count));
  let { numGiven } = seen;
  while (numGiven && before(numGiven).trimEnd().length > start) {
    numGiven--;
  }
  while (numGiven < tokens.length && before(numGiven + 1).length <= start) {
    numGiven++;
  }
  const own = before(numGiven + 1).length - start;
  const shared = tokens[numGiven];
  const isShared = start > before(numGiven).length && isWritable(shared);
  return { ...seen, numGiven, first: isShared ? shared.slice(-own) : null };
}

/** The answer's tokens before a place. They have no letters of the prompt. */
export function answerOf({ tokens, numGiven, first }, end = tokens.length) {
  const found = tokens.slice(numGiven, end);
  if (found.length && first) {
    found[0] = first;
  }
  return found;
}

/**
 * How many tokens of an answer have all letters of its first part.
 *
 * @param seen what `placed` gave
 * @param answer the tokens that wrote the answer
 * @param part the first ones of them
 * @returns `count`, END never counted, `isOver`, whether the last one has
 *     letters that stand behind the part, and `isShort`, whether the text has
 *     lost the part's last blank
 */
export function countOf(seen, answer, part) {
  const tokens = written(seen);
  const most = tokens.length - seen.numGiven;
  if (!part.length) {
    return { count: 0, isOver: false, isShort: false };
  }
  if (!spelt(answer).trim()) {
    return { count: 0, isOver: false, isShort: true };
  }
  if (!spells(tokens, answer)) {
    const known = [...answerOf(seen).slice(0, most), END].findIndex(isMark);
    const count = Math.min(part.length, known);
    return { count, isOver: false, isShort: false };
  }
  const text = spelt(tokens).trimEnd();
  const end =
    text.length - spelt(answer).trimEnd().length + spelt(part).length;
  const before = (count) => spelt(tokens.slice(0, seen.numGiven + count));
  let count = 0;
  // The first bytes of a character are another one.
  while (count < most && (before(count).length < end ||
      !text.startsWith(before(count)))) {
    count++;
  }
  const { length } = before(count);
  const isOver = length > end && !/\s$/.test(spelt(part));
  return { count, isOver, isShort: length < end };
}

/** The tokens before the END that stands behind them. */
function written({ tokens }) {
  return tokens.at(-1) === END ? tokens.slice(0, -1) : tokens;
}

/** Whether letters can be counted: a text may have lost what is unknown. */
function spells(tokens, answer) {
  const text = spelt(answer).trim();
  return text !== "" && spelt(tokens).trimEnd().endsWith(text);
}

/** What tokens write, as the server reads it: with single blanks. */
export function spelt(tokens) {
  return textOf(tokens).replace(/\s+/g, " ");
}
