// A classifier's desk: label, probabilities and attention of one text or more.

import { readingOf, showReading } from "./attention.js";
import { fill, html, setOptions } from "./elements.js";
import { mean } from "./inspection.js";
import { latest } from "./latest.js";
import { percent } from "./numbers.js";
import { hideProblem, showProblem } from "./problem.js";

const TYPING = 200; // Milliseconds without a key.
const TITLES = { text_pair: "Second text" };

export function classifier(desk, model, typed, again) {
  const find = (id) => desk.querySelector(`#${id}`);
  const problem = desk.querySelector(".problem");
  const { signatures } = model.kind;
  const { inputs, decode } = signatures.serving_default;
  const name = signatures.with_attention ? "with_attention" : "serving_default";
  const { outputs } = signatures[name];
  // A model that does not say its labels names one when it chooses it.
  const known = [];
  let last = {};

  const ask = latest(
    TYPING,
    (signal, texts) => (isBlank() ? null : model.ask(name, texts, signal)),
    (answer) => {
      hideProblem(problem);
      if (answer === null) {
        return;
      }
      last = answer;
      showLabel(find, answer, answer[decode[0]], known);
      showAttention(find, answer, outputs);
    },
    (error) => {
      hideAnswer(true);
      showProblem(problem, error, again);
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
    find("looked").hidden = isHidden || name !== "with_attention";
  }

  find("texts").prepend(...inputs.flatMap((input) => {
    const id = idOf(input);
    const field = html("textarea", {
      id, rows: 4, dir: "auto", spellcheck: "false", placeholder: "Type a text",
    }, typed[input] ?? "");
    field.addEventListener("input", update);
    return [html("label", { class: "title", for: id }, titleOf(input)), field];
  }));
  for (const id of ["layer", "head"]) {
    find(id).addEventListener("change", () =>
      showAttention(find, last, outputs),
    );
  }
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

function showLabel(find, { labels, probabilities }, label, known) {
  known[probabilities.indexOf(Math.max(...probabilities))] = label;
  find("label").textContent = label;
  const names = labels ?? known;
  const items = probabilities.flatMap((share, place) => {
    if (names[place] === undefined) {
      return [];
    }
    const bar = html("span", { class: "bar", "aria-hidden": "true" });
    bar.style.setProperty("--share", share);
    return [html("li", {}, html("span", {}, names[place]), bar,
      html("data", {}, percent(share)))];
  });
  find("probabilities").replaceChildren(...items);
}

/** Each output between two axes, the last of which is tokens. */
function showAttention(find, answer, outputs) {
  const names = Object.keys(outputs).filter(
    (name) => outputs[name].length > 1 && outputs[name].at(-1) in outputs,
  );
  const readings = names.map((name) => {
    const axes = outputs[name];
    const [rowAxis, columnAxis] = axes.slice(-2);
    find("heads").hidden = axes.length < 4;
    const weights = axes.length < 4
      ? answer[name]
      : chosenHead(find, answer[name]);
    // Such as "hop 1", where the rows are no tokens.
    const rows = answer[rowAxis] ?? weights.map(
      (_, place) => `${rowAxis.replace(/s$/, "")} ${place + 1}`,
    );
    return readingOf(rows, answer[columnAxis], weights);
  });
  const parent = find("readings");
  while (parent.children.length < readings.length) {
    const place = html("div", { class: "reading" });
    fill(place, "reading");
    parent.append(place);
  }
  readings.forEach((reading, i) => showReading(parent.children[i], reading));
}

/** The weights [S, S] of the layer and the head that are chosen. */
function chosenHead(find, layers) {
  const count = (length) =>
    Array.from({ length }, (_, i) => [`${i}`, `${i + 1}`]);
  const top = `${layers.length - 1}`;
  setOptions(find("layer"), count(layers.length), find("layer").value || top);
  const heads = layers[find("layer").value];
  const all = [["mean", "mean of all"], ...count(heads.length)];
  setOptions(find("head"), all, find("head").value);
  const head = find("head").value;
  return head === "mean" ? mean(heads) : heads[head];
}
