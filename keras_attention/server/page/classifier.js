// A classifier's desk: label, probabilities and maps of one text or more.

import { drawShare } from "./choices.js";
import { html } from "./elements.js";
import { groupsOf } from "./inspection.js";
import { latest } from "./latest.js";
import { viewMaps } from "./map_viewer.js";
import { percent } from "./numbers.js";
import { hideProblem, showProblem } from "./problem.js";

const TYPING = 200; // Milliseconds without a key.
const TITLES = { text_pair: "Second text" };
// The first that a model has says most.
const SIGNATURES = ["inspect", "with_attention", "serving_default"];

export function classifier(desk, model, typed, again) {
  const find = (id) => desk.querySelector(`#${id}`);
  const problem = desk.querySelector(".problem");
  const { signatures } = model.kind;
  const { inputs, decode } = signatures.serving_default;
  const name = SIGNATURES.find((one) => one in signatures);
  const { outputs } = signatures[name];
  const showMaps = viewMaps(find("looked"));
  // A model that does not say its labels names one when it chooses it.
  const known = [];

  const ask = latest(
    TYPING,
    (signal, texts) => (isBlank() ? null : model.ask(name, texts, signal)),
    (answer) => {
      hideProblem(problem);
      if (answer === null) {
        return;
      }
      showLabel(find, answer, answer[decode[0]], known);
      const groups = groupsOf(answer, outputs);
      find("looked").hidden = !groups.length;
      showMaps(groups);
    },
    async (error, texts) => {
      hideAnswer(true);
      const long = error.isFinal ? await tooLong(model, texts) : null;
      if (inputs.every((input) => typed[input] === texts[input])) {
        find(idOf(long ?? inputs.at(-1))).after(problem);
        showProblem(problem, error, again);
      }
    },
  );

  function isBlank() {
    return inputs.some((input) => !typed[input]?.trim());
  }

  function update() {
    for (const input of inputs) {
      typed[input] = find(idOf(input)).value;
    }
    hideAnswer(isBlank());
    ask(Object.fromEntries(inputs.map((input) => [input, typed[input]])));
  }

  /** The answer to an earlier text is none to a blank one. */
  function hideAnswer(isHidden) {
    desk.classList.toggle("blank", isHidden);
    if (isHidden) {
      find("looked").hidden = true;
    }
  }

  find("texts").prepend(...inputs.flatMap((input) => {
    const id = idOf(input);
    const field = html("textarea", {
      id, rows: 4, dir: "auto", spellcheck: "false", placeholder: "Type a text",
    }, typed[input] ?? "");
    field.addEventListener("input", update);
    return [html("label", { class: "title", for: id }, titleOf(input)), field];
  }));
  update();
}

function idOf(input) {
  return input.replaceAll("_", "-");
}

/** Such as "Question". */
function titleOf(input) {
  const words = input.replaceAll("_", " ");
  return TITLES[input] ?? words[0].toUpperCase() + words.slice(1);
}

/** The first of several texts that the model does not take, or null. */
async function tooLong(model, texts) {
  const names = Object.keys(texts);
  if (names.length === 1 || !model.has("num_tokens")) {
    return null;
  }
  for (const name of names) {
    const alone = Object.fromEntries(names.map((one) => [one, texts[name]]));
    const { num_tokens, limit } =
      await model.ask("num_tokens", alone).catch(() => ({}));
    if (limit && num_tokens > limit) {
      return name;
    }
  }
  return null;
}

function showLabel(find, { labels, probabilities }, label, known) {
  known[probabilities.indexOf(Math.max(...probabilities))] = label;
  find("label").textContent = label;
  const names = labels ?? known;
  find("probabilities").replaceChildren(...probabilities.flatMap(
    (share, place) =>
      names[place] === undefined
        ? []
        : [drawShare(names[place], share, percent(share))]));
}
