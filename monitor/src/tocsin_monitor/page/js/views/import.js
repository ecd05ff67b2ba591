/** Import history: drop or choose files, follow their progress, and see what was found. */

import { get } from "../api.js";
import { field } from "../dialogs.js";
import { el, nameOf } from "../dom.js";
import { count, counted } from "../format.js";
import { signalHash } from "../router.js";
import { upload } from "../upload.js";

/** Milliseconds between two requests for the progress. */
const ASK_EVERY = 500;

/** @typedef {{signal: string, observations: number, duplicates: number, refused: number, older: number}} Taken */
/** @typedef {{signal: string, stage: string, done: number, total: number, incidents: number, message: string}} Stage */

/** @type {import("./view.js").View} */
export function importing(main, route) {
  let closed = false;
  const signal = el("input", {
    name: "signal",
    required: true,
    value: route.query.get("signal") ?? "{name}",
    spellcheck: "false",
    autocomplete: "off",
  });
  const files = el("input", { type: "file", name: "files", multiple: true, class: "files" });
  const drop = el(
    "label",
    { class: "drop" },
    el("strong", {}, "Drop files here, or choose them"),
    el(
      "span",
      { class: "muted" },
      "CSV, TSV, JSON lines or Parquet, as ",
      el("code", {}, "tocsin detect"),
      " reads them",
    ),
    files,
  );
  const results = el("ul", { class: "cards", "aria-live": "polite" });
  main.append(
    el("div", { class: "bar" }, el("a", { class: "back", href: "#/" }, "‹ Signals"), el("h1", { tabindex: "-1" }, "Import history")),
    el(
      "p",
      { class: "muted" },
      "The monitor learns and judges past observations. Their incidents are shown as past ones, without notifications.",
    ),
    field("Signal", signal, "{name} stands for the signal's name in the file: its id, or the name of the file."),
    drop,
    results,
  );

  files.addEventListener("change", () => {
    take(files.files);
    files.value = "";
  });
  for (const kind of ["dragenter", "dragover"])
    drop.addEventListener(kind, (event) => {
      event.preventDefault();
      drop.classList.add("over");
    });
  for (const kind of ["dragleave", "drop"]) drop.addEventListener(kind, () => drop.classList.remove("over"));
  drop.addEventListener("drop", (event) => {
    event.preventDefault();
    take(event.dataTransfer?.files ?? null);
  });

  /** @param {FileList | null} chosen */
  function take(chosen) {
    if (signal.reportValidity()) for (const file of chosen ?? []) void bring(file);
  }

  /** @param {File} file */
  async function bring(file) {
    const bar = el("progress", { max: 1, value: 0, "aria-label": file.name });
    const state = el("div", {}, "Sending…");
    const found = el("div", { class: "what" }, el("div", { class: "title" }, nameOf(file.name)), bar, state);
    results.prepend(el("li", { class: "card" }, found));
    try {
      const taken = await upload("/imports", { file: file.name, signal: signal.value.trim() }, file, (share) => {
        bar.value = share;
        if (share === 1) state.textContent = "Reading and storing…";
      });
      state.textContent = taken.understood;
      found.append(...taken.problems.map((/** @type {string} */ text) => el("div", { class: "muted" }, text)));
      await Promise.all(
        taken.signals.map((/** @type {Taken} */ one) => {
          const line = el("div", {});
          found.append(line);
          return follow(one, line, bar);
        }),
      );
      bar.remove();
    } catch (error) {
      bar.remove();
      state.className = "failed";
      state.textContent = error instanceof Error ? error.message : String(error);
    }
  }

  /**
   * Show the progress of a signal until everything is learned.
   * @param {Taken} taken
   * @param {HTMLElement} line
   * @param {HTMLProgressElement} bar
   */
  async function follow(taken, line, bar) {
    const link = () => el("a", { href: signalHash(taken.signal) }, nameOf(taken.signal));
    while (!closed) {
      const stages = /** @type {Stage[]} */ ((await get("/imports")).imports);
      const one = stages.find((other) => other.signal === taken.signal);
      if (one?.stage === "failed") return line.replaceChildren(link(), `: cannot be learned: ${one.message}`);
      if (!one || one.stage === "done")
        return line.replaceChildren(link(), `: ${stored(taken)}, ${counted(one?.incidents ?? 0, "past incident")}`);
      if (one.total) bar.value = one.done / one.total;
      line.replaceChildren(link(), `: ${stored(taken)}, learning ${count(one.done)} of ${count(one.total)}…`);
      await new Promise((resolve) => setTimeout(resolve, ASK_EVERY));
    }
  }

  return {
    title: "Import history",
    close: () => {
      closed = true;
    },
  };
}

/** @param {Taken} taken */
function stored({ observations, duplicates, refused, older }) {
  return [
    counted(observations, "observation"),
    duplicates && `${count(duplicates)} already stored`,
    refused && `${count(refused)} refused`,
    older && `${count(older)} beyond the retention time`,
  ]
    .filter(Boolean)
    .join(", ");
}
