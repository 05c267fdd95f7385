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
  let offer = null; // faults, groups with the kind of each member, topics with their partitions, brokers
  const grouped = (select, entries, titleOf, labelOf) => {
    const titles = new Map();
    for (const [value, one] of entries) {
      const title = titleOf(one);
      if (!titles.has(title)) titles.set(title, make("optgroup", "", { label: title }));
      titles.get(title).append(make("option", labelOf(one), { value }));
    }
    select.replaceChildren(...titles.values());
  };
  // What may be hit, by the fault's keys, as [label of its group of options, label, keys in a file].
  const rolesOf = () => [
    ...Object.keys(offer.groups).map((group) => ["By role", `coordinator of ${group}`, { "coordinator-of": group }]),
    ["By role", "controller", "controller"],
    ...Object.entries(offer.topics).flatMap(([topic, partitions]) => Array.from({ length: Math.min(partitions, PARTITIONS) },
      (_, number) => ["By role", `leader of ${topic}/${number}`, { "partition-leader": `${topic}/${number}` }])),
    ...offer.brokers.map((id) => ["By id", `broker ${id}`, { brokers: [id] }]),
  ];
  const targetsOf = ({ hits, schema: { properties } }) => {
    const groups = Object.entries(offer.groups).filter(([, members]) => Object.keys(members).length);
    if (properties.target && hits === "broker") return rolesOf().map(([of, label, target]) => [of, label, { target }]);
    if (properties.target) {
      return groups.flatMap(([group, members]) => [
        ...["all", "static", "dynamic"].filter((word) => word === "all" || Object.values(members).includes(word))
          .map((target) => [`${target} of ${group}`, { target, group }]),
        [`leader of ${group}`, { target: { "leader-member-of": group } }],
        ...Object.keys(members).map((name) => [name, { target: { names: [name] } }]),
      ].map(([label, keys]) => [`Group ${group}`, label, keys]));
    }
    if (properties.members) { // two static members swap their ids
      return groups.flatMap(([group, members]) => {
        const names = Object.keys(members).filter((name) => members[name] === "static");
        return names.filter((_, at) => at % 2).map((name, at) => [names[2 * at], name])
          .map((pair) => [`Group ${group}`, pair.join(" and "), { members: pair }]);
      });
    }
    if (properties.topic) return Object.keys(offer.topics).map((topic) => ["Topics", topic, { topic }]);
    if (properties.group) return groups.map(([group]) => ["Groups", group, { group }]);
    return [["Brokers", "every broker", {}]];
  };

  // The fields of a fault, by the JSON schema of its keys; those that no input has are left out.
  const PARTITIONS = 8; // how many of a topic are offered by number
  const APART = ["fault", "at", "when", "repeat", "target", "group", "topic", "members", "allow_empty"];
  const USUAL = { duration: "5s", latency: "500ms", number: 1, rate: "1mbit" };
  const heldBy = (name, form) => {
    if (name === "brokers") return ["broker", rolesOf().map(([, label, value]) => ({ label, value }))];
    const choices = form.enum ?? form.items?.enum ?? ("const" in form ? [form.const] : null);
    if (choices) return [form.items ? "choices" : "choice", choices.map((value) => ({ label: value, value }))];
    if (form.type === "string") return [form.pattern?.endsWith("(ms|s|m|h)$") ? "duration" : "text", []];
    return [{ integer: "number", number: "share", boolean: "flag" }[form.type], []];
  };
  const usual = (chosen, name, holds, options) => {
    if (chosen.fault === "member.slow-poll") return "45s"; // longer than the poll interval
    if (chosen.fault === "topic.add-partitions") return 2 * Math.max(...Object.values(offer.topics));
    if (holds === "broker") return "controller";
    if (options.length) return holds === "choices" ? [options[0].value] : options[0].value;
    return USUAL[name] ?? USUAL[holds];
  };
  const fieldsOf = (chosen) => Object.entries(chosen.schema.properties)
    .filter(([name]) => !APART.includes(name) && (name !== "every" || chosen.schema.required.includes(name)))
    .map(([name, schema]) => {
      const form = (schema.anyOf ?? [schema]).find((one) => one.type !== "null");
      const [holds, options] = heldBy(name, form);
      const required = chosen.schema.required.includes(name);
      return { name, holds, options, required, says: schema.description ?? "", value: required ? usual(chosen, name, holds, options) : null };
    });
  const isAsked = (chosen) => targetsOf(chosen).length && fieldsOf(chosen).every((one) => one.holds || !one.required);
  const fault = () => offer.faults[Number($("fault").value)];
  const target = () => targetsOf(fault())[Number($("target").value)];
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
    put($("says"), chosen.meaning);
    const before = $("target").selectedOptions[0]?.textContent;
    const targets = targetsOf(chosen);
    grouped($("target"), [...targets.entries()], ([of]) => of, ([, label]) => label);
    const same = [...$("target").options].find((one) => one.textContent === before);
    const one = [...$("target").options].find((option) => targets[Number(option.value)][2].target?.names);
    if (same ?? one) (same ?? one).selected = true;
    const fields = fieldsOf(chosen).filter((one) => one.holds);
    const made = (required) => fields.filter((one) => one.required === required).map((one) => {
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
    return { fault: fault().fault, ...target()[2], ...given };
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
  let oneShot = new Set(); // the faults that nothing has to heal
  const begin = async (run) => {
    number = run.number;
    const found = await post("faults", { do: "offer" });
    if (number !== run.number || !found.faults) {
      number = null;
      return;
    }
    offer = found;
    oneShot = new Set(offer.faults.filter((one) => one.one_shot).map((one) => one.fault));
    offer.faults = offer.faults.filter(isAsked);
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
    open = goes && offer ? live.faults.filter((one) => one.injected_ms !== null && !one.healed && !oneShot.has(one.fault)) : [];
    showOpen();
  });
})();
