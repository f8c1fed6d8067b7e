// Conditions for a translation: how it begins, and what it holds.

import { html } from "./elements.js";
import { latest } from "./latest.js";
import { hideProblem, showProblem } from "./problem.js";

const PAUSE = 300;
const NONE = "The search found no translation with all of this.";

/**
 * Brings the card of conditions to life.
 *
 * @param item a function of a text and its score to an item of a list
 * @returns `isOffered`, whether the model can do it, and `update()`, for when
 *     the text has changed
 */
export function showConditions(desk, model, typed, item, again) {
  const card = desk.querySelector("#held");
  const problem = card.querySelector(".problem");
  const list = card.querySelector(".list");
  const [prefix, terms] = card.querySelectorAll("textarea");
  const isOffered = model.has("constrained");

  const ask = latest(
    PAUSE,
    async (signal) => {
      const { text } = typed;
      const hasConditions = prefix.value.trim() || terms.value.trim();
      return text.trim() && hasConditions
        ? model.ask("constrained",
          { text, prefix: prefix.value, terms: terms.value }, signal)
        : null;
    },
    (answer) => {
      hideProblem(problem);
      if (answer === null) {
        list.replaceChildren();
      } else if (answer.translation === "") {
        list.replaceChildren(html("li", {}, NONE));
      } else {
        list.replaceChildren(item(answer.translation, answer.score));
      }
    },
    (error) => {
      list.replaceChildren();
      showProblem(problem, error, again);
    },
    list,
  );
  function update() {
    if (isOffered) {
      ask();
    }
  }

  card.addEventListener("input", update);
  return { isOffered, update };
}
