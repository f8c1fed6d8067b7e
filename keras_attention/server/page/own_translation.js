// An own translation: its probability, and where the model looks meanwhile.

import {
  clearReading, readingNodes, readingOf, showReading,
} from "./attention.js";
import { html } from "./elements.js";
import { drawHeatMap } from "./heat_map.js";
import { latest } from "./latest.js";
import { decimal } from "./numbers.js";
import { hideProblem, showProblem } from "./problem.js";

const PAUSE = 300;

/**
 * Brings the card of an own translation to life.
 *
 * @returns `isOffered`, whether the model can do it, `update()`, for when the
 *     text has changed, and `use(reference)`.
 */
export function showOwn(desk, model, typed, again) {
  const card = desk.querySelector("#own");
  const problem = card.querySelector(".problem");
  const probability = card.querySelector("#probability");
  const field = card.querySelector("#reference");
  const aligned = card.querySelector("#aligned");
  aligned.append(html("div", {}, ...readingNodes()),
    html("div", { class: "map" }));

  const clear = () => {
    hideProblem(problem);
    aligned.hidden = true;
    clearReading(aligned);
    probability.textContent = "";
  };
  const ask = latest(
    PAUSE,
    async (signal) => {
      const pair = { text: typed.text, reference: typed.reference };
      if (!pair.text.trim() || !pair.reference.trim()) {
        return null;
      }
      const [score, alignment] = await Promise.all([
        model.ask("score", pair, signal),
        model.ask("align", pair, signal),
      ]);
      return { score, alignment };
    },
    (answer) => {
      if (answer === null) {
        clear();
        return;
      }
      hideProblem(problem);
      const { target_tokens, source_tokens, attention } = answer.alignment;
      probability.textContent = inWords(answer.score);
      aligned.hidden = false;
      const reading = readingOf(target_tokens, source_tokens, attention);
      const { mark } = drawHeatMap(aligned.querySelector(".map"), reading);
      showReading(aligned, reading, false, mark);
    },
    (error) => {
      clear();
      showProblem(problem, error, again);
    },
    aligned,
  );

  const isOffered = model.has("score") && model.has("align");
  function update() {
    typed.reference = field.value;
    if (isOffered) {
      ask();
    }
  }

  field.addEventListener("input", update);
  field.value = typed.reference;
  clear();
  return {
    isOffered,
    update,
    use(reference) {
      field.value = reference;
      update();
      field.focus();
    },
  };
}

function inWords({ log_probability, num_tokens }) {
  const each = decimal(log_probability / num_tokens);
  return (
    `Log-probability ${decimal(log_probability)}: ` +
    `${each} for each of ${num_tokens} tokens.`
  );
}
