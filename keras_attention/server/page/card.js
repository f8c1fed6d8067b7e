// What a model can read: its data, and examples to try.

import { html } from "./elements.js";

// What changes nothing: these choices are shown if they have other values.
const SILENT = {
  "coverage_penalty": 0,
  "no_repeat_ngram_size": 0,
  "min_length": 0,
  "num_groups": 1,
  "temperature": 0,
  "sampling_seed": 1,
  "constraints": false,
  "minimum_risk": false,
  "per_request": false,
};

/** Shows what a model's card says below its texts and its answer. */
export function showCard(desk, { kind, card }) {
  const first = desk.querySelector(".pair, .card");
  // A model that an older version exported does not tell its search.
  const search = Object.entries(kind?.search ?? {})
    .filter(([name, value]) => SILENT[name] !== value);
  if (search.length) {
    const choices = search.map(([name, value]) => `${name} ${value}`);
    first.after(html("p", { class: "note", id: "search" },
      `Its search: ${choices.join(", ")}.`));
  }
  if (!card?.data) {
    return;
  }
  const fields = [...desk.querySelectorAll("textarea")];
  // Numbers, such as a picture's, are no examples to be typed.
  const rows = kind && desk.querySelector(".pair") ? card.examples ?? [] : [];
  const buttons = rows.map((row) => {
    const texts = [row].flat();
    const attributes = { type: "button", dir: "auto" };
    const button = html("button", attributes, texts.join(" | "));
    button.addEventListener("click", () => {
      texts.slice(0, kind.signatures.serving_default.inputs.length)
        .forEach((text, i) => {
          fields[i].value = text;
          fields[i].dispatchEvent(new Event("input"));
        });
    });
    return button;
  });
  const about = html("section", { class: "card", id: "about" },
    html("p", { class: "note" }, `The model learned from ${card.data} `,
      "It answers any other text too, badly and without a warning."));
  if (buttons.length) {
    about.append(html("p", {}, "Try ", ...buttons));
  }
  first.after(about);
}
