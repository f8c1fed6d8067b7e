// A language model's desk: how a prompt goes on, and how probable it is.

import { showLine } from "./attention.js";
import { showGiven } from "./choices.js";
import { lookInside } from "./inside.js";
import { latest } from "./latest.js";
import { decimal } from "./numbers.js";
import { hideProblem, showProblem } from "./problem.js";
import { answerOf } from "./spelling.js";
import { textOf, unitsFrom } from "./tokens.js";
import { drawing, mostProbable, whole, write } from "./writing.js";

const TYPING = 250; // Milliseconds without a key.

export function languageModel(desk, model, typed, again) {
  const find = (id) => desk.querySelector(`#${id}`);
  const problem = desk.querySelector(".problem");
  const prompt = find("text");
  const options = find("drawing");
  const inside = lookInside(desk, model, typed, () => goOn(0),
    (result) => showWritten(desk, result, true), () => chosen(options));

  const ask = latest(
    TYPING,
    async (signal, text) => {
      const [answer, score] = await Promise.all([
        inside.isOffered ? {} : model.ask("serving_default", { text }, signal),
        text.trim() && model.has("score")
          ? model.ask("score", { text }, signal)
          : null,
      ]);
      return { continuation: answer.continuation, score };
    },
    ({ continuation, score }) => {
      hideProblem(problem);
      if (continuation !== undefined) {
        find("continuation").textContent = continuation;
        find("take").hidden = continuation === "";
      }
      find("probable").hidden = score === null;
      if (score !== null) {
        showScore(find, score);
      }
    },
    (error) => {
      inside.stop();
      find("continuation").textContent = "";
      desk.querySelector(".rows").replaceChildren();
      find("take").hidden = find("probable").hidden = true;
      find("looked").hidden = true;
      showProblem(problem, error, again);
    },
  );

  function goOn(pause) {
    inside.start(async (askFor) => {
      await new Promise((resolve) => setTimeout(resolve, pause));
      const { most, choose } = chosen(options);
      const show = (result) => showWritten(desk, result, false);
      const steps = { ask: askFor, most, choose, show };
      if (choose !== mostProbable) {
        return write({ ...steps, given: [] });
      }
      // The model's own search, as far as it goes.
      const own = whole(await askFor(""));
      const { seen, count, isEnded } = own;
      return isEnded || count >= most
        ? { ...own, count: Math.min(count, most), isEnded: count < most }
        : write({ ...steps, given: seen.tokens.slice(
          seen.numGiven, seen.numGiven + count) });
    });
  }

  function update() {
    typed.text = prompt.value;
    // The continuation is that of the prompt before.
    find("take").hidden = true;
    ask(typed.text);
    if (inside.isOffered) {
      goOn(TYPING);
    }
  }

  prompt.addEventListener("input", update);
  options.addEventListener("submit", (event) => {
    event.preventDefault();
    goOn(0);
  });
  options.addEventListener("input", () => {
    showOptions(options);
    goOn(TYPING);
  });
  find("take").addEventListener("click", () => {
    prompt.value += find("continuation").textContent;
    update();
    prompt.focus();
  });
  if (inside.isOffered) {
    find("continuation").className = "aloud";
    desk.querySelector(".rows").hidden = false;
    options.hidden = false;
    showOptions(options);
  }
  prompt.value = typed.text;
  update();
}

/** Which options are shown, and whether one has a number that it cannot. */
function showOptions(options) {
  const isDrawn = options.elements.way.value === "drawn";
  for (const part of options.querySelectorAll(".draw")) {
    part.hidden = !isDrawn;
  }
  const problem = options.querySelector(".problem");
  hideProblem(problem);
  const wrong = [...options.querySelectorAll("label:not([hidden]) input")].find(
    (field) => {
      const { validity: { rangeUnderflow, rangeOverflow, badInput } } = field;
      const isFraction = isWhole(field) && field.validity.stepMismatch;
      return rangeUnderflow || rangeOverflow || badInput || isFraction;
    });
  if (wrong) {
    const name = wrong.labels[0].textContent.trim();
    const kind = isWhole(wrong) ? "is a whole number" : "goes";
    wrong.parentElement.after(problem);
    showProblem(problem, {
      isFinal: true,
      message: `${name} ${kind} from ${wrong.min} to ${wrong.max}.`,
    });
  }
}

/** Whether a field takes no fraction. */
function isWhole({ step }) {
  return step === "1";
}

/** What the options choose: how long, and a function that chooses a token. */
function chosen({ elements }) {
  const [most, temperature, topK, topP] =
    ["most", "temperature", "topK", "topP"].map((name) => {
      const field = elements[name];
      // A field may be empty for a moment, or have what it does not take.
      const number = Number(field.value || field.defaultValue);
      const taken = isWhole(field) ? Math.round(number) : number;
      return Math.min(Math.max(taken, Number(field.min)), Number(field.max));
    });
  const choose = elements.way.value === "drawn"
    ? drawing({ temperature, topK, topP })
    : mostProbable;
  return { most, choose };
}

/** The continuation's tokens; the page says it aloud when it is complete. */
function showWritten(desk, { seen, count, isEnded }, isComplete) {
  const { tokens, numGiven } = seen;
  const end = numGiven + count;
  const rows = unitsFrom(numGiven, tokens.slice(0, end + (isEnded ? 1 : 0)));
  const buttons = showLine(desk.querySelector(".rows"), rows);
  if (isComplete) {
    const text = textOf(answerOf(seen, end));
    desk.querySelector("#continuation").textContent = text;
    desk.querySelector("#take").hidden = text === "";
    showGiven(desk.querySelector("#prompted"), seen);
  }
  return { buttons, rows };
}

function showScore(find, { log_probability, num_tokens }) {
  find("probability").textContent = decimal(log_probability);
  find("count").textContent = num_tokens;
  find("perplexity").textContent = decimal(
    Math.exp(-log_probability / num_tokens),
  );
}
