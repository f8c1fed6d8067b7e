// A translator's desk: the translation as it is typed, and where it looked.

import {
  clearReading, readingOf, showLine, showReading,
} from "./attention.js";
import { showAsked } from "./asked.js";
import { showConditions } from "./conditions.js";
import { html } from "./elements.js";
import { drawHeatMap } from "./heat_map.js";
import { lookInside } from "./inside.js";
import { showKept } from "./kept.js";
import { languagesOf } from "./languages.js";
import { latest } from "./latest.js";
import { decimal } from "./numbers.js";
import { showOwn } from "./own_translation.js";
import { hideProblem, showProblem } from "./problem.js";
import { units } from "./tokens.js";
import { mostProbable, whole } from "./writing.js";

const TYPING = 150; // Milliseconds without a key.
const PAUSE = 500;

export function translator(desk, model, typed, again) {
  const find = (id) => desk.querySelector(`#${id}`);
  const problem = desk.querySelector(".problem");
  const source = find("text");
  const own = showOwn(desk, model, typed, again);
  const itemOf = (text, score) =>
    bestItem(text, score, own.isOffered ? own.use : null);
  const held = showConditions(desk, model, typed, itemOf, again);
  const asked = showAsked(desk, model, typed, itemOf, again);
  const kept = showKept(desk, model, typed, again);
  const state = { limit: null };
  const inside = lookInside(desk, model, typed, () => look(0),
    (...shown) => showInspected(desk, ...shown),
    ({ source: { length } }) => (
      { choose: mostProbable, most: 2 * length + 32 }));
  const look = (pause) => inside.isOffered && inside.start(
    async (ask) => {
      await new Promise((resolve) => setTimeout(resolve, pause));
      return { ...whole(await ask("")), isOwn: true };
    });
  nameLanguages(desk, model);
  countTokens(model, "").then(({ limit }) => {
    state.limit = limit;
  });
  const clear = () => {
    clearTranslation(desk);
    for (const id of ["more", "held", "asked", "own"]) {
      find(id).hidden = true;
    }
  };

  const askTranslation = latest(
    TYPING,
    (signal, text) => {
      if (!text.trim()) {
        return null;
      }
      const signature = model.has("with_attention")
        ? "with_attention"
        : "serving_default";
      return model.ask(signature, { text }, signal);
    },
    (answer, text) => {
      hideProblem(problem);
      if (answer === null) {
        return;
      }
      find("more").hidden = false;
      find("held").hidden = !held.isOffered;
      find("asked").hidden = !asked.isOffered;
      find("own").hidden = !own.isOffered;
      showTranslation(desk, answer, state.limit);
      // Until the others come, those of the text before are pale.
      find("others").ariaBusy = "true";
      askMore(text, answer.translation);
      look(PAUSE);
    },
    async (error) => {
      clear();
      showProblem(problem, error, again);
      if (!error.isFinal) {
        return;
      }
      // Whoever shortens a text wants to know how long it is.
      const { text } = typed;
      const { num_tokens, limit } = await countTokens(model, text);
      if (num_tokens && text === typed.text) {
        find("length").textContent = lengthInWords(num_tokens, limit);
      }
    },
  );
  const askMore = latest(
    PAUSE,
    (signal, text, translation) => more(model, text, translation, signal),
    (answer) => {
      find("others").ariaBusy = "false";
      showMore(desk, answer, own.isOffered ? own.use : null);
    },
    (error) => {
      find("best").hidden = find("searches").hidden = true;
      find("risk").hidden = true;
      if (!find("more").hidden) {
        showProblem(problem, error, again);
      }
    },
  );

  function translate() {
    typed.text = source.value;
    inside.stop();
    const isBlank = !typed.text.trim();
    find("waits").hidden = !isBlank;
    if (isBlank) {
      hideProblem(problem);
      clear();
    }
    askTranslation(typed.text);
    held.update();
    asked.update();
    kept.update();
    own.update();
  }

  source.addEventListener("input", translate);
  find("copy").addEventListener("click", async () => {
    await navigator.clipboard.writeText(find("heard").textContent);
    find("copy").textContent = "Copied";
  });
  source.value = typed.text;
  translate();
}

/** What the model's name says of its languages, for readers and voices. */
function nameLanguages(desk, model) {
  const languages = languagesOf(model.name);
  if (!languages) {
    return;
  }
  const [source, target] = languages;
  desk.querySelector("[for=text]").textContent = source.name;
  desk.querySelector("#translation-title").textContent = target.name;
  for (const part of desk.querySelectorAll(
    "#text, .columns, #kept textarea")) {
    part.lang = source.code;
  }
  const written = "#heard, .rows, .list, #greedy, #risk [dir], #reference, " +
    "#held textarea, #kept .large";
  for (const part of desk.querySelectorAll(written)) {
    part.lang = target.code;
  }
}

/** A text's tokens and the limit. The desk does without, if none come. */
async function countTokens(model, text) {
  return model.has("num_tokens")
    ? model.ask("num_tokens", { text }).catch(() => ({}))
    : {};
}

function lengthInWords(count, limit) {
  return limit ? `${count} of at most ${limit} tokens` : `${count} tokens`;
}

function showTranslation(desk, answer, limit) {
  const find = (id) => desk.querySelector(`#${id}`);
  const { translation, target_tokens, source_tokens, attention } = answer;
  const isEmpty = translation === "";
  if (isEmpty || !attention) {
    clearTranslation(desk);
    desk.querySelector(".rows").textContent = translation;
  }
  say(desk, translation);
  if (isEmpty) {
    return;
  }
  find("copy").hidden = !navigator.clipboard;
  find("copy").textContent = "Copy";
  if (!attention) {
    return;
  }
  if (answer.score !== undefined) {
    find("score").textContent = `score ${decimal(answer.score)}`;
  }
  find("length").textContent = lengthInWords(source_tokens.length, limit);
  desk.querySelector(".reads").hidden = false;
  find("looked").hidden = false;
  const reading = readingOf(target_tokens, source_tokens, attention);
  const { mark } = drawHeatMap(desk.querySelector(".map"), reading);
  showReading(desk, reading, true, mark);
}

/** The page says a translation aloud when it changes. */
function say(desk, translation) {
  const heard = desk.querySelector("#heard");
  const text = translation || "The translation is empty.";
  if (heard.textContent !== text) {
    heard.textContent = text;
  }
  if (!translation) {
    desk.querySelector(".says").textContent = text;
  }
}

/** The tokens of a translation, with their choices, by a reading or none. */
function showInspected(desk, { seen, isOwn }, reading, mark) {
  say(desk, seen.text);
  if (!isOwn) {
    const logs = seen.probabilities.map(Math.log);
    const sum = logs.reduce((all, log) => all + log, 0);
    desk.querySelector("#score").textContent =
      `log-probability ${decimal(sum)}`;
  }
  if (reading) {
    const buttons = showReading(desk, reading, false, mark);
    return { buttons, rows: reading.rows };
  }
  desk.querySelector(".reads").hidden = true;
  if (seen.text) {
    desk.querySelector(".says").textContent = "";
  }
  const rows = units(seen.tokens);
  return { buttons: showLine(desk.querySelector(".rows"), rows), rows };
}

function clearTranslation(desk) {
  clearReading(desk);
  desk.querySelector(".reads").hidden = true;
  desk.querySelector("#looked").hidden = true;
  desk.querySelector("#copy").hidden = true;
  for (const id of ["heard", "length", "score"]) {
    desk.querySelector(`#${id}`).textContent = "";
  }
}

/** The n-best list, and the greedy translation: how probable another one is. */
async function more(model, text, translation, signal) {
  const answer = { translation };
  if (model.has("n_best")) {
    answer.best = await model.ask("n_best", { text }, signal);
  }
  if (model.has("greedy")) {
    const greedy = await model.ask("greedy", { text }, signal);
    answer.greedy = greedy.translation;
  }
  if (model.has("minimum_risk")) {
    const chosen = await model.ask("minimum_risk", { text }, signal);
    answer.leastRisk = chosen.translation;
  }
  const isOther = model.has("greedy") && answer.greedy !== translation;
  if (isOther && model.has("score")) {
    const pairs = {
      text: [text, text],
      reference: [translation, answer.greedy],
    };
    const scores = await model.call("score", pairs, signal);
    answer.logProbabilities = scores.log_probability;
  }
  return answer;
}

function showMore(desk, answer, use) {
  const find = (id) => desk.querySelector(`#${id}`);
  find("searches").hidden = answer.greedy === undefined;
  const { translations = [], scores } = answer.best ?? {};
  // The translation itself stands above, with its score.
  const items = translations.flatMap((text, place) =>
    text && text !== answer.translation
      ? [bestItem(text, scores[place], use)]
      : [],
  );
  find("best").hidden = !items.length;
  find("best").querySelector(".list").replaceChildren(...items);
  find("risk").hidden = answer.leastRisk === undefined;
  find("risk").querySelector("[dir]").textContent = answer.leastRisk ?? "";
  if (answer.greedy !== undefined) {
    find("greedy").textContent = answer.greedy;
    find("greedy").hidden = answer.greedy === answer.translation;
    find("compared").textContent = comparison(answer);
  }
}

function bestItem(text, score, use) {
  const words = html("span", { dir: "auto" }, text);
  const item = html("li", {}, words, html("data", {}, decimal(score)));
  if (use) {
    const name = `Look into: ${text}`;
    const attributes = { type: "button", "aria-label": name };
    const button = html("button", attributes, "Look into");
    button.addEventListener("click", () => use(text));
    item.append(button);
  }
  return item;
}

function comparison({ translation, greedy, logProbabilities }) {
  if (translation === greedy) {
    return "It finds the same text as the beams.";
  }
  if (!logProbabilities) {
    return "It finds another text than the beams.";
  }
  const [beams, one] = logProbabilities.map(decimal);
  return `Log-probability: ${beams} by beams, ${one} by greedy search.`;
}
