// A classifier's desk, for one text or two: label, probabilities, attention.

import { readingOf, showReading } from "./attention.js";
import { fill, html, setOptions } from "./elements.js";
import { latest } from "./latest.js";
import { percent } from "./numbers.js";
import { hideProblem, showProblem } from "./problem.js";

const TYPING = 200; // Milliseconds without a key.

export function classifier(desk, model, typed, again) {
  const find = (id) => desk.querySelector(`#${id}`);
  const problem = desk.querySelector(":scope > .problem");
  const signature = model.has("with_attention")
    ? "with_attention"
    : "serving_default";
  const isPair = "text_pair" in model.signatures[signature].inputs;
  // The model names a class when it chooses it. The page remembers.
  const classes = new Map();
  let last = {};

  const ask = latest(
    TYPING,
    (signal, texts) =>
      isBlank() ? null : model.ask(signature, texts, signal),
    (answer) => {
      hideProblem(problem);
      if (answer === null) {
        return;
      }
      last = answer;
      showLabel(find, answer, classes);
      showAttention(find, answer);
    },
    (error) => {
      hideAnswer(true);
      showProblem(problem, error, again);
    },
  );

  function isBlank() {
    const fields = isPair ? [typed.text, typed.reference] : [typed.text];
    return fields.some((text) => !text.trim());
  }

  function update() {
    typed.text = find("text").value;
    typed.reference = find("text-pair").value;
    const texts = isPair
      ? { text: typed.text, text_pair: typed.reference }
      : { text: typed.text };
    hideAnswer(isBlank());
    ask(texts);
  }

  /** The answer to an earlier text is none to a blank one. */
  function hideAnswer(isHidden) {
    desk.classList.toggle("blank", isHidden);
    find("looked").hidden = isHidden || !model.has("with_attention");
  }

  find("second").hidden = !isPair;
  find("text").value = typed.text;
  find("text-pair").value = typed.reference;
  find("text").addEventListener("input", update);
  find("text-pair").addEventListener("input", update);
  for (const id of ["layer", "head"]) {
    find(id).addEventListener("change", () => showAttention(find, last));
  }
  update();
}

function showLabel(find, { label, probabilities }, classes) {
  classes.set(probabilities.indexOf(Math.max(...probabilities)), label);
  find("label").textContent = label;
  const items = probabilities.map((share, place) => {
    const name = classes.get(place) ?? `class ${place + 1}`;
    const bar = html("span", { class: "bar", "aria-hidden": "true" });
    bar.style.setProperty("--share", share);
    return html("li", {}, html("span", {}, name), bar,
      html("data", {}, percent(share)));
  });
  find("probabilities").replaceChildren(...items);
}

function showAttention(find, answer) {
  const { source_tokens, pair_tokens, attention, attention_pair } = answer;
  if (!attention) {
    return;
  }
  const hasHeads = Array.isArray(attention[0]?.[0]?.[0]);
  find("heads").hidden = !hasHeads;
  let readings;
  if (pair_tokens) {
    readings = [
      readingOf(source_tokens, pair_tokens, attention),
      readingOf(pair_tokens, source_tokens, attention_pair),
    ];
  } else if (hasHeads) {
    const weights = chosenHead(find, attention);
    readings = [readingOf(source_tokens, source_tokens, weights)];
  } else {
    const hops = attention.map((_, hop) => `hop ${hop + 1}`);
    readings = [readingOf(hops, source_tokens, attention)];
  }
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

function mean(heads) {
  return heads[0].map((row, i) =>
    row.map((_, j) =>
      heads.reduce((sum, head) => sum + head[i][j], 0) / heads.length,
    ),
  );
}
