// Another search than the model's own: its choices go with the request.

import { html } from "./elements.js";
import { latest } from "./latest.js";
import { hideProblem, showProblem } from "./problem.js";

const PAUSE = 300;
const NONE = "The search found no translation.";

/**
 * Brings the card of another search to life.
 *
 * @param item a function of a text and its score to an item of a list
 * @returns `isOffered`, whether the model can do it, and `update()`, for when
 *     the text has changed
 */
export function showAsked(desk, model, typed, item, again) {
  const card = desk.querySelector("#asked");
  const problem = card.querySelector(".problem");
  const list = card.querySelector(".list");
  const way = card.querySelector("[name=way]");
  const fields = card.querySelector(".fields");
  const isOffered = model.has("search") && model.has("sample");

  const ask = latest(
    PAUSE,
    async (signal) => {
      const { text } = typed;
      return text.trim() && card.open
        ? model.ask(way.value, { text, ...valuesOf(fields) }, signal)
        : null;
    },
    (answer) => {
      hideProblem(problem);
      const { translations = [], scores } = answer ?? {};
      const items = translations.flatMap((text, place) =>
        text ? [item(text, scores[place])] : []);
      const isEmpty = answer !== null && !items.length;
      list.replaceChildren(...(isEmpty ? [html("li", {}, NONE)] : items));
    },
    (error) => {
      list.replaceChildren();
      showProblem(problem, error, again);
    },
  );
  function update() {
    if (isOffered) {
      ask();
    }
  }
  function showFields() {
    const { choices } = model.kind.signatures[way.value];
    fields.replaceChildren(...Object.entries(choices).map(fieldOf));
  }

  if (isOffered) {
    showFields();
  }
  way.addEventListener("change", showFields);
  card.addEventListener("input", update);
  card.addEventListener("toggle", update);
  return { isOffered, update };
}

/** A choice with the value that the model has for it. */
function fieldOf([name, value]) {
  const words = name.replaceAll("_", " ");
  const field = typeof value === "string"
    ? html("textarea", { name, rows: 1, dir: "auto", spellcheck: "false" })
    : html("input", { name, type: "number", min: 0, step: "any", value });
  return html("label", {}, `${words} `, field);
}

/** The choices that have a value. The server has the others. */
function valuesOf(fields) {
  const chosen = [...fields.querySelectorAll("[name]")]
    .filter(({ value }) => value.trim());
  return Object.fromEntries(chosen.map(({ name, type, value }) =>
    [name, type === "number" ? Number(value) : value]));
}
