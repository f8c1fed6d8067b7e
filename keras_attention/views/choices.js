// The best tokens of a step. A click writes one of them.

import { setLine } from "./attention.js";
import { html } from "./elements.js";
import { finePercent } from "./numbers.js";
import { isBlank, quoted, units, usable } from "./tokens.js";

/**
 * Puts the view of what each step might have written into `parent`.
 *
 * @param most choices of a step
 * @param force a function of a step and of the token that somebody chooses
 *     there, or null where nobody can
 * @param isText whether steps write tokens, and not one label
 * @returns `update(seen, last)`, which takes what `inspect` gave and the last
 *     step that opens, `open(step)`, and `close()`
 */
export function viewChoices(parent, most, force, isText = true) {
  const told = html("span", { class: "step note" });
  const [before, after] = [["The token before", "←"], ["The token after", "→"]]
    .map(([name, text]) =>
      html("button", { type: "button", "aria-label": name }, text));
  const list = html("ol", { class: "list" });
  const steps = html(
    "p", { class: "steps", hidden: "" }, before, after, told);
  parent.append(steps, list);
  let seen;
  let last;
  let step = null;

  function open(place) {
    const { numGiven } = seen;
    step = Math.min(Math.max(place, numGiven), last);
    const number = step - numGiven + 1;
    told.textContent = `Token ${number} might have been ` +
      (force ? "one of these. Choose one to go on from there."
        : "one of these.");
    const isFocused = list.contains(document.activeElement);
    list.replaceChildren(...drawChoices(seen, step, most, force));
    parent.hidden = false;
    steps.hidden = !isText;
    if (isFocused) {
      // Who chooses by keyboard goes on from there.
      list.querySelector("[aria-pressed=true]").focus();
    }
    before.disabled = step === numGiven;
    after.disabled = step === last;
  }
  before.addEventListener("click", () => open(step - 1));
  after.addEventListener("click", () => open(step + 1));
  return {
    open,
    update(...now) {
      [seen, last] = now;
      if (step !== null) {
        open(step);
      }
    },
    close() {
      step = null;
      list.replaceChildren();
      parent.hidden = steps.hidden = true;
    },
  };
}

function drawChoices(seen, step, most, force) {
  const written = seen.tokens[step];
  const best = seen.best[step].slice(0, most);
  if (!best.some(({ token }) => token === written)) {
    best.push({ token: written, probability: seen.probabilities[step] });
  }
  const canEnd = step > seen.numGiven; // An answer without tokens is none.
  const places = usable(best);
  return best.map((choice) => {
    const { token, probability } = choice;
    const { text, isMark } = units([token])[0];
    const name = isMark ? text : text ? quoted(text) : "a space";
    if (!force) {
      return drawShare(token === written ? `${name} ✓` : name, probability);
    }
    const button = html("button", {
      type: "button", "aria-pressed": token === written, dir: "auto",
    }, name);
    button.disabled = !places.includes(choice) || (isMark && !canEnd);
    button.addEventListener("click", () => force(step, token));
    return drawShare(button, probability);
  });
}

/** An item of a list: a name, or a button, with its share of 1 as a bar. */
export function drawShare(name, share, told = finePercent(share)) {
  const bar = html("span", { class: "bar", "aria-hidden": true });
  bar.style.setProperty("--share", share);
  return html("li", {},
    typeof name === "string" ? html("span", { dir: "auto" }, name) : name,
    bar, html("data", {}, told));
}

/** Shows the tokens that were given, shaded by their probability. */
export function showGiven(parent, { tokens, numGiven, probabilities }) {
  const given = units(tokens.slice(0, numGiven));
  setLine(parent, given.map(({ places }) => {
    const share = shareOf(places, probabilities);
    const span = html("span", { class: "unit", title: finePercent(share) });
    span.style.setProperty("--weight", share);
    return span;
  }), given);
  parent.hidden = !numGiven;
}

/** Shades tokens by their probability, and makes them open their choices. */
export function shade(buttons, rows, seen, open) {
  rows.forEach(({ places }, row) => {
    const share = shareOf(places, seen.probabilities);
    buttons[row].classList.add("shaded");
    buttons[row].style.setProperty("--weight", share);
    buttons[row].title = finePercent(share);
    // The last one is a word's own, where a lone blank stands before it.
    const place = isBlank(seen.tokens[places[0]]) ? places.at(-1) : places[0];
    buttons[row].addEventListener("click", () => open(place));
  });
}

/** How probable it is that all tokens of a unit are written. */
function shareOf(places, probabilities) {
  return places.reduce((all, place) => all * probabilities[place], 1);
}
