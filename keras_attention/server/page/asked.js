// Another search than the model's own: its choices go with the request.

import { html } from "./elements.js";
import { latest } from "./latest.js";
import { languagesOf } from "./languages.js";
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
      const field = error.field ?? namedIn(error.message, fields);
      (field?.parentElement ?? fields).after(problem);
      showProblem(problem, error, again);
    },
    list,
  );
  function update() {
    if (isOffered) {
      ask();
    }
  }
  function showFields() {
    const { choices } = model.kind.signatures[way.value];
    const { inputs } = model.signatures[way.value];
    const language = languagesOf(model.name)?.[1].code ?? "";
    fields.replaceChildren(...Object.entries(choices).map(([name, value]) =>
      fieldOf(name, value, inputs[name].dtype, language)));
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
function fieldOf(name, value, dtype, lang) {
  const step = dtype === "DT_INT64" ? 1 : "any";
  const field = dtype === "DT_STRING"
    ? html("textarea",
      { name, lang, rows: 1, dir: "auto", spellcheck: "false" })
    : html("input", { name, type: "number", min: 0, step, value });
  return html("label", {}, `${wordsOf(name)} `, field);
}

/**
 * The choices that have a value. The server has the others.
 *
 * @throws an Error with the `field` that has what it does not take
 */
function valuesOf(fields) {
  const all = [...fields.querySelectorAll("[name]")];
  const field = all.find(({ validity: { valid } }) => !valid);
  if (field) {
    const kind = field.step === "1" ? "a whole number" : "a number";
    const words = `${wordsOf(field.name)} takes ${kind} from ${field.min} on.`;
    throw Object.assign(new Error(words), { field, isFinal: true });
  }
  const chosen = all.filter(({ value }) => value.trim());
  return Object.fromEntries(chosen.map(({ name, type, value }) =>
    [name, type === "number" ? Number(value) : value]));
}

/** The field that the server's words name, or undefined. */
function namedIn(message, fields) {
  return [...fields.querySelectorAll("[name]")].find(({ name }) =>
    new RegExp(`\\b${name}\\b`).test(message));
}

/** Such as "num beams". */
function wordsOf(name) {
  return name.replaceAll("_", " ");
}
