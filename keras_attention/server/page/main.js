// The page: a model is chosen, and its kind decides which desk it gets.

import { showCard } from "./card.js";
import { classifier } from "./classifier.js";
import { html, setOptions } from "./elements.js";
import { form } from "./form.js";
import { languageModel } from "./language_model.js";
import { hideProblem, showProblem } from "./problem.js";
import { listModels, openModel } from "./server.js";
import { translator } from "./translator.js";

const SECOND = 1000;
const LOADS = "The server loads its models.";
const find = (id) => document.getElementById(id);
// What was typed stays when the model changes.
const typed = { text: "", reference: "" };
let models = {};
// Of what was begun, the last alone may change the page.
let turns = 0;

/** The template of a model, and the function that brings it to life. */
function deskOf(model) {
  const outputs = model.kind?.signatures.serving_default.outputs ?? {};
  if (Object.keys(model.kind?.numbers ?? {}).length) {
    return ["form", form]; // The desks take texts alone.
  }
  if (outputs.translation) {
    return ["translator", translator];
  }
  if (outputs.continuation) {
    return ["language-model", languageModel];
  }
  if (outputs.probabilities) {
    return ["classifier", classifier];
  }
  return ["form", form];
}

/** Lists the models, and opens the one that an address names. */
async function start(address) {
  const turn = ++turns;
  const { model, version } = Object.fromEntries(
    new URLSearchParams(new URL(address).hash.slice(1)),
  );
  document.querySelectorAll("#desk .problem").forEach(hideProblem);
  let listed;
  try {
    listed = await listModels();
  } catch (error) {
    if (turn === turns) {
      showProblem(find("status"), error, startHere);
    }
    return;
  }
  if (turn !== turns) {
    return;
  }
  const names = Object.keys(listed).filter((name) => listed[name].length);
  if (!names.length) {
    if (find("status").textContent !== LOADS) {
      find("status").textContent = LOADS;
      find("status").hidden = false;
    }
    setTimeout(() => turn === turns && startHere(), SECOND);
    return;
  }
  models = listed;
  setOptions(find("model"), names.map((name) => [name, name]), model);
  showVersions(version);
  if (await open()) {
    find("desk").querySelector("textarea")?.focus();
  }
}

function showVersions(chosen) {
  const numbers = [...models[find("model").value]].sort((a, b) => b - a);
  const options = numbers.map((number) => [`${number}`, `${number}`]);
  const newest = ["", `newest (${numbers[0]})`];
  setOptions(find("version"), [newest, ...options], chosen ?? "");
}

/** Opens the model and version that are chosen. Gives whether it did. */
async function open() {
  const turn = ++turns;
  const name = find("model").value;
  const version = find("version").value;
  hideProblem(find("status"));
  try {
    // At once, not at the end: something newer may have its own by then.
    const choice = new URLSearchParams({ model: name, version });
    history.replaceState(null, "", `#${choice}`);
    const model = await openModel(name, version);
    if (turn !== turns) {
      return false;
    }
    const [template, bring] = deskOf(model);
    // A late answer of the model before finds its own desk, off the page.
    const desk = html("main", { id: "desk" });
    desk.append(find(template).content.cloneNode(true));
    find("desk").replaceWith(desk);
    bring(desk, model, typed, startHere);
    showCard(desk, model);
    document.title = `${name} · keras-attention`;
    return true;
  } catch (error) {
    if (turn === turns) {
      find("desk").replaceChildren();
      showProblem(find("status"), error, startHere);
    }
    return false;
  }
}

function startHere() {
  start(location.href);
}

find("choice").addEventListener("submit", (event) => event.preventDefault());
find("version").addEventListener("change", open);
find("model").addEventListener("change", () => {
  showVersions();
  open();
});
// Somebody has changed the address, or followed a link to another model.
addEventListener("hashchange", (event) => start(event.newURL));
startHere();
