// Faults by hand: a form of what the run says can be broken, what that would do, and what is open.
// live.js says what the run is at by the event `groupquake`; everything else is asked of the run.
(() => {
  const home = new URL("../", document.currentScript.src);
  const $ = (id) => document.getElementById(`by-hand-${id}`);
  const HITS = { member: "Members", group: "Groups", topic: "Topics", broker: "Brokers" };
  const form = $("form");

  const make = (name, text = "", more = {}) => Object.assign(document.createElement(name), text ? { textContent: text } : {}, more);
  const put = (element, text) => {
    if (element.textContent !== text) element.textContent = text;
  };
  const post = async (path, content) => {
    try {
      const body = JSON.stringify(content);
      const reply = await fetch(new URL(path, home), { method: "POST", headers: { "Content-Type": "application/json" }, body });
      return await reply.json();
    } catch {
      return { refused: "Locust does not respond, or has ended" };
    }
  };

  // --- the form -----------------------------------------------------------------------------------------------------
  let offer = null;
  const grouped = (select, entries, titleOf, labelOf) => {
    const titles = new Map();
    for (const [value, one] of entries) {
      const title = titleOf(one);
      if (!titles.has(title)) titles.set(title, make("optgroup", "", { label: title }));
      titles.get(title).append(make("option", labelOf(one), { value }));
    }
    select.replaceChildren(...titles.values());
  };
  const fault = () => offer.faults[Number($("fault").value)];
  const words = (name) => (name === "apis" ? "APIs" : name.replaceAll("_", " ").replace(/^./, (first) => first.toUpperCase()));

  // One input for a field; each knows its value by `read`, undefined if it is left as it is.
  const input = (field) => {
    const options = (list) => list.map((one) => make("option", one.label, { value: JSON.stringify(one.value) }));
    if (field.holds === "choices") {
      const set = make("fieldset", "", { title: field.says });
      set.append(make("legend", words(field.name)));
      for (const one of field.options) {
        const box = make("input", "", { type: "checkbox", value: one.value, checked: (field.value ?? []).includes(one.value) });
        const label = make("label");
        label.append(box, one.label);
        set.append(label);
      }
      set.read = () => [...set.querySelectorAll(":checked")].map((box) => box.value);
      return set;
    }
    const label = make("label", words(field.name), { title: field.says });
    let made;
    if (["choice", "broker", "flag"].includes(field.holds)) {
      made = make("select");
      const list = field.holds === "flag" ? [{ label: "yes", value: true }, { label: "no", value: false }] : field.options;
      made.append(...(field.required ? [] : [make("option", "as usual", { value: "" })]), ...options(list));
      if (field.value !== null) made.value = JSON.stringify(field.value);
      label.read = () => (made.value ? JSON.parse(made.value) : undefined);
    } else {
      const isNumber = ["number", "share"].includes(field.holds);
      made = make("input", "", { type: isNumber ? "number" : "text", value: field.value ?? "", required: field.required, autocomplete: "off" });
      if (field.holds === "share") Object.assign(made, { min: 0, max: 1, step: 0.05 });
      if (field.holds === "duration") made.placeholder = "5s";
      label.read = () => (made.value === "" ? undefined : isNumber ? Number(made.value) : made.value);
    }
    label.append(made);
    return label;
  };
  const choose = () => {
    const chosen = fault();
    put($("says"), chosen.says);
    const before = $("target").selectedOptions[0]?.textContent;
    grouped($("target"), chosen.targets.map((at) => [at, offer.targets[at]]), (one) => one.of, (one) => one.label);
    const same = [...$("target").options].find((one) => one.textContent === before);
    const one = [...$("target").options].find((option) => offer.targets[Number(option.value)].keys.target?.names);
    if (same ?? one) (same ?? one).selected = true;
    const made = (required) => chosen.fields.filter((one) => one.required === required).map((one) => {
      const element = input(one);
      element.dataset.name = one.name;
      return element;
    });
    $("required").replaceChildren(...made(true));
    $("optional").replaceChildren(...made(false));
    $("more").hidden = $("optional").children.length === 0;
  };
  const asked = () => {
    const fields = [...form.querySelectorAll("[data-name]")].map((one) => [one.dataset.name, one.read()]);
    const given = Object.fromEntries(fields.filter(([, value]) => value !== undefined));
    return { fault: fault().fault, ...offer.targets[Number($("target").value)].keys, ...given };
  };

  // --- what it would do ---------------------------------------------------------------------------------------------
  let asking = false, again = false, timer = 0;
  const foresee = async () => {
    if (asking) {
      again = true;
      return;
    }
    asking = true;
    $("forecast").classList.add("old");
    const { forecast, refused } = await post("faults", { do: "foresee", fault: asked() });
    asking = false;
    if (again) {
      again = false;
      foresee();
      return;
    }
    $("forecast").classList.remove("old");
    put($("refused"), refused ?? "");
    const rows = Object.entries(forecast?.groups ?? {}).flatMap(([name, says]) => [make("dt", name), make("dd", says)]);
    $("groups").replaceChildren(...rows);
    put($("undo"), forecast
      ? [`Undo: ${forecast.undo}.`, forecast.steps > 1 ? `${forecast.steps} steps, one after the other.` : "",
         "Foreseen for this fault alone, on whole groups.", ...forecast.notes.map((note) => `Not foreseen: ${note}.`)].filter(Boolean).join(" ")
      : "");
  };
  const soon = () => {
    clearTimeout(timer);
    timer = setTimeout(foresee, 400);
  };

  form.addEventListener("input", (event) => {
    if (event.target === $("fault")) choose();
    soon();
  });
  $("foresee").addEventListener("click", foresee);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    put($("refused"), "");
    const { refused } = await post("faults", { do: "inject", fault: asked() });
    put($("refused"), refused ?? "");
  });

  // --- what is open -------------------------------------------------------------------------------------------------
  const healing = new Set();
  const heal = async (content, ids) => {
    ids.forEach((id) => healing.add(id));
    const { refused } = await post("faults/heal", content);
    if (refused) ids.forEach((id) => healing.delete(id));
    put($("refused"), refused ?? "");
    showOpen();
  };
  let open = [];
  const rows = new Map();
  const row = (one) => {
    const made = make("li");
    const button = make("button", "Heal", { type: "button" });
    button.setAttribute("aria-label", `Heal ${one.id}: ${one.fault} on ${one.target}`);
    button.addEventListener("click", () => healing.has(one.id) || heal({ fault_id: one.id }, [one.id]));
    made.append(button, make("span", `${one.id}: ${one.fault} on ${one.target}${one.by_hand ? ", by hand" : ""}`));
    return made;
  };
  const showOpen = () => {
    for (const [id, made] of rows) {
      if (!open.some((one) => one.id === id)) {
        if (made.contains(document.activeElement)) $("heal-all").focus();
        made.remove();
        rows.delete(id);
      }
    }
    for (const one of open) {
      if (!rows.has(one.id)) {
        rows.set(one.id, row(one));
        $("open").querySelector("ul").append(rows.get(one.id));
      }
      const button = rows.get(one.id).firstElementChild;
      put(button, healing.has(one.id) ? "Healing …" : "Heal");
      button.setAttribute("aria-disabled", String(healing.has(one.id)));
    }
    if (!open.length && $("open").contains(document.activeElement)) $("fault").focus();
    $("open").hidden = open.length === 0;
  };
  $("heal-all").addEventListener("click", () => heal({}, open.map((one) => one.id)));

  // --- the run ------------------------------------------------------------------------------------------------------
  let number = null; // of the run whose offer shows
  const begin = async (run) => {
    number = run.number;
    const found = await post("faults", { do: "offer" });
    if (number !== run.number || !found.faults) {
      number = null;
      return;
    }
    offer = found;
    healing.clear();
    grouped($("fault"), [...offer.faults.entries()], (one) => HITS[one.hits], (one) => one.fault);
    choose();
    $("wait").hidden = true;
    form.hidden = false;
    foresee();
  };
  addEventListener("groupquake", ({ detail: { runs, live } }) => {
    const run = runs.at(-1);
    const phase = live.phases?.at(-1)?.name;
    if (run && !run.result && phase === "impact") {
      if (number !== run.number) begin(run);
    } else {
      form.hidden = true;
      $("wait").hidden = false;
      put($("wait"), !run || phase === "formation" || !phase ? "What can be broken shows once the members are in."
        : "The impact phase is over: nothing more can be broken.");
      number = null;
    }
    const goes = run && !run.result && ["impact", "recovery"].includes(phase);
    const oneShot = new Set(offer?.one_shot ?? []);
    open = goes && offer ? live.faults.filter((one) => one.injected_ms !== null && !one.healed && !oneShot.has(one.fault)) : [];
    showOpen();
  });
})();
