// The best tokens of a step. A click writes one of them.

import { html } from "./elements.js";
import { finePercent } from "./numbers.js";
import { isBlank, quoted, units } from "./tokens.js";
import { usable } from "./writing.js";

const MOST = 5;

/**
 * Shows what a step might have written.
 *
 * @param parent holds nodes of the classes step and list
 * @param seen what `inspect` gave
 * @param step which
 * @param force a function of the token that somebody chooses
 */
export function showChoices(parent, seen, step, force) {
  const written = seen.tokens[step];
  const best = seen.best[step].slice(0, MOST);
  if (!best.some(({ token }) => token === written)) {
    best.push({ token: written, probability: seen.probabilities[step] });
  }
  const number = step - seen.numGiven + 1;
  parent.querySelector(".step").textContent =
    `Token ${number} might have been. Choose one to go on from there.`;
  const canEnd = number > 1; // An answer without tokens is none.
  const places = usable(best);
  const items = best.map((choice) => {
    const { token, probability } = choice;
    const { text, isMark } = units([token])[0];
    const button = html("button", {
      type: "button", "aria-pressed": token === written, dir: "auto",
    }, isMark ? text : text ? quoted(text) : "a space");
    button.disabled = !places.includes(choice) || (isMark && !canEnd);
    button.addEventListener("click", () => force(token));
    const bar = html("span", { class: "bar", "aria-hidden": true });
    bar.style.setProperty("--share", probability);
    return html("li", {}, button, bar, html("data", {}, finePercent(probability)));
  });
  const list = parent.querySelector(".list");
  const isFocused = list.contains(document.activeElement);
  list.replaceChildren(...items);
  parent.hidden = false;
  if (isFocused) {
    // Who chooses by keyboard goes on from there.
    list.querySelector("[aria-pressed=true]").focus();
  }
}

/** Shades tokens by their probability, and makes them open their choices. */
export function shade(buttons, rows, seen, open) {
  rows.forEach(({ places }, row) => {
    const share = places.reduce(
      (product, place) => product * seen.probabilities[place], 1);
    buttons[row].classList.add("shaded");
    buttons[row].style.setProperty("--weight", share);
    buttons[row].title = finePercent(share);
    // The last one is a word's own, where a lone blank stands before it.
    const place = isBlank(seen.tokens[places[0]]) ? places.at(-1) : places[0];
    buttons[row].addEventListener("click", () => open(place));
  });
}
