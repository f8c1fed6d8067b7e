// Sentence by sentence, with what comes out as it went in.

import { latest } from "./latest.js";
import { hideProblem, showProblem } from "./problem.js";

const PAUSE = 500;

/**
 * Brings the card of such translations to life.
 *
 * @returns `isOffered`, whether the model can do it, and `update()`, for when
 *     the text has changed
 */
export function showKept(desk, model, typed, again) {
  const card = desk.querySelector("#kept");
  const problem = card.querySelector(".problem");
  const shown = card.querySelector(".large");
  const isOffered = model.kind?.name === "translation";

  const ask = latest(
    PAUSE,
    async (signal) => {
      const { text } = typed;
      const options = optionsOf(card);
      const isAsked = options.split_sentences || options.keep.length;
      return text.trim() && card.open && isAsked
        ? model.ask("serving_default", { text }, signal, options)
        : null;
    },
    (answer) => {
      hideProblem(problem);
      shown.textContent = answer?.translation ?? "";
    },
    (error) => {
      shown.textContent = "";
      showProblem(problem, error, again);
    },
    shown,
  );
  function update() {
    card.hidden = !isOffered || !typed.text.trim();
    if (isOffered) {
      ask();
    }
  }

  card.addEventListener("input", update);
  card.addEventListener("toggle", update);
  return { isOffered, update };
}

/** What is chosen, as a request names it. */
function optionsOf(card) {
  const names = [...card.querySelectorAll("[name=keep]:checked")]
    .map(({ value }) => value);
  const texts = card.querySelector("textarea").value.split("\n")
    .map((text) => text.trim()).filter((text) => text);
  return {
    split_sentences: card.querySelector("[name=split_sentences]").checked,
    keep: [...names, ...texts],
  };
}
