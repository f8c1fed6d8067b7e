// A language model's desk: how a prompt goes on, and how probable it is.

import { latest } from "./latest.js";
import { decimal } from "./numbers.js";
import { hideProblem, showProblem } from "./problem.js";

const TYPING = 250; // Milliseconds without a key.

export function languageModel(desk, model, typed, again) {
  const find = (id) => desk.querySelector(`#${id}`);
  const problem = desk.querySelector(".problem");
  const prompt = find("text");

  const ask = latest(
    TYPING,
    async (signal, text) => {
      const [answer, score] = await Promise.all([
        model.ask("serving_default", { text }, signal),
        text.trim() && model.has("score")
          ? model.ask("score", { text }, signal)
          : null,
      ]);
      return { continuation: answer.continuation, score };
    },
    ({ continuation, score }) => {
      hideProblem(problem);
      find("continuation").textContent = continuation;
      find("take").hidden = continuation === "";
      find("probable").hidden = score === null;
      if (score !== null) {
        showScore(find, score);
      }
    },
    (error) => {
      find("continuation").textContent = "";
      find("take").hidden = find("probable").hidden = true;
      showProblem(problem, error, again);
    },
  );

  function update() {
    typed.text = prompt.value;
    // The continuation is that of the prompt before.
    find("take").hidden = true;
    ask(typed.text);
  }

  prompt.addEventListener("input", update);
  find("take").addEventListener("click", () => {
    prompt.value += find("continuation").textContent;
    update();
    prompt.focus();
  });
  prompt.value = typed.text;
  update();
}

function showScore(find, { log_probability, num_tokens }) {
  find("probability").textContent = decimal(log_probability);
  find("count").textContent = num_tokens;
  find("perplexity").textContent = decimal(
    Math.exp(-log_probability / num_tokens),
  );
}
